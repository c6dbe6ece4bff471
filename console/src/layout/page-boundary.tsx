import { Component, type ReactNode } from "react";
import { ActionButton } from "../kit/action-button.tsx";
import { Notice } from "../kit/notice.tsx";

/** Keeps a page that breaks from taking the others with it. */
export class PageBoundary extends Component<{ children: ReactNode }, { broken: boolean }> {
  override state = { broken: false };

  static getDerivedStateFromError(): { broken: boolean } {
    return { broken: true };
  }

  override render(): ReactNode {
    if (!this.state.broken) return this.props.children;
    return (
      <Notice
        tone="bad"
        title="This page broke."
        actions={<ActionButton onPress={() => location.reload()}>Load it anew</ActionButton>}
      >
        Perhaps the gateway was updated since the page was opened.
      </Notice>
    );
  }
}
