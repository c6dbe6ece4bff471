import { CopyButton } from "./copy-button.tsx";

interface CodeBlockProps {
  readonly code: string;
  /** Names it, as for CopyButton. */
  readonly what: string;
  /** Is seen in its place, where something in it is not for all eyes; what is copied is the code. */
  readonly shown?: string;
}

/** Code to paste elsewhere. */
export function CodeBlock({ code, what, shown = code }: CodeBlockProps) {
  return (
    <div className={code.includes("\n") ? "code-block" : "code-block one-line"}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <pre tabIndex={0} role="region" aria-label={what}>
        <code>{shown}</code>
      </pre>
      <CopyButton text={code} what={what} />
    </div>
  );
}
