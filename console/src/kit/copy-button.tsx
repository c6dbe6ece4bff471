import { useState } from "react";
import { ActionButton } from "./action-button.tsx";

/** Copies a text. `what` names it to those who see no context: "Copy the request as curl". */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [outcome, setOutcome] = useState<"Copied" | "Select it by hand">();
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setOutcome("Copied"),
      () => setOutcome("Select it by hand"),
    );
  return (
    <>
      <ActionButton
        compact
        aria-label={`Copy ${what}`}
        onPress={() => void copy()}
        onBlur={() => setOutcome(undefined)}
      >
        {outcome ?? "Copy"}
      </ActionButton>
      <span role="status" className="visually-hidden">
        {outcome}
      </span>
    </>
  );
}
