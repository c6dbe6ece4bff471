import { useEffect, useRef } from "react";
import { ActionButton } from "../../kit/action-button.tsx";
import { CodeBlock } from "../../kit/code-block.tsx";
import type { FreshKey } from "./key-record.ts";

/** A key that was just made: it is told this once, and gone when the card is closed. */
export function FreshKeyCard({ fresh, onClose }: { fresh: FreshKey; onClose: () => void }) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { secret } = fresh;
  useEffect(() => heading.current?.focus(), []);
  return (
    <section className="card fresh-key" aria-labelledby="fresh-key">
      <div>
        <h2 id="fresh-key" ref={heading} tabIndex={-1}>
          The key {fresh.name}
        </h2>
        <p className="soft">Copy it now: it is shown this once, and nobody can look it up later.</p>
      </div>
      <CodeBlock code={secret} what="the new key" />
      <div>
        <ActionButton onPress={onClose}>I have copied it</ActionButton>
      </div>
    </section>
  );
}
