import { type ReactNode, useEffect, useState } from "react";
import { ActionButton } from "../kit/action-button.tsx";
import { useHashRoute } from "../route/hash-route.ts";
import { KeysButton } from "../session/keys-button.tsx";
import { Navigation } from "./navigation.tsx";
import { ThemeButton } from "./theme-button.tsx";

/** What surrounds every page: the bar at the top, and the navigation, which at phone width is opened by a button. */
export function Layout({ children }: { children: ReactNode }) {
  const { page } = useHashRoute();
  const [isOpen, setOpen] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: whoever goes to a page has chosen.
  useEffect(() => setOpen(false), [page]);
  useEscape(isOpen, () => setOpen(false));
  return (
    <div className="layout">
      {/* biome-ignore lint/a11y/useValidAnchor: what is behind # names the page, so the focus moves without it. */}
      <a
        className="skip-link visually-hidden"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("content")?.focus();
        }}
      >
        Skip to the content
      </a>
      <header className="top-bar">
        <ActionButton
          look="quiet"
          aria-label={isOpen ? "Close the navigation" : "Open the navigation"}
          aria-expanded={isOpen}
          aria-controls="navigation"
          onPress={() => setOpen(!isOpen)}
        >
          <svg viewBox="0 0 20 20" fill="none" stroke="currentColor" strokeWidth="2" aria-hidden="true">
            <path d={isOpen ? "M4 4l12 12M16 4L4 16" : "M3 5h14M3 10h14M3 15h14"} />
          </svg>
        </ActionButton>
        <a className="brand" href="#/">
          Media Gateway
        </a>
        <div className="top-actions">
          <KeysButton />
          <ThemeButton />
        </div>
      </header>
      <Navigation isOpen={isOpen} onClose={() => setOpen(false)} />
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

/** Does something on Escape, wherever the focus is, while there is something to end. */
function useEscape(isActive: boolean, onEscape: () => void): void {
  useEffect(() => {
    if (!isActive) return;
    const listen = ({ key }: KeyboardEvent) => {
      if (key === "Escape") onEscape();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  });
}
