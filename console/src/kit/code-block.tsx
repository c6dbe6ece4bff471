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
      <section tabIndex={0} aria-label={what}>
        <pre>
          <code>{shown}</code>
        </pre>
      </section>
      <CopyButton text={code} what={what} />
    </div>
  );
}
