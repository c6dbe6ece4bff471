import { useState } from "react";
import { ActionButton } from "../kit/action-button.tsx";
import { Badge } from "../kit/badge.tsx";
import { Dialog } from "../kit/dialog.tsx";
import { KeyForm } from "./key-form.tsx";
import { type KeyKind, maskedKey } from "./session.ts";
import { useSession } from "./session-context.tsx";

const kinds: readonly KeyKind[] = ["inference", "management"];

/** The keys of the tab: which there are, and how to take in another or forget one. */
export function KeysButton() {
  const { keys } = useSession();
  const [isOpen, setOpen] = useState(false);
  const working = kinds.filter((kind) => keys[kind] !== undefined && keys[kind].refused === undefined);
  const isRefused = kinds.some((kind) => keys[kind]?.refused !== undefined);
  const words = ["Sign in", "1 key", "2 keys"][working.length];
  return (
    <>
      <ActionButton look={working.length === 0 ? "plain" : "quiet"} onPress={() => setOpen(true)}>
        <svg viewBox="0 0 20 20" fill="none" stroke="currentColor" strokeWidth="1.6" aria-hidden="true">
          <circle cx="6.5" cy="13.5" r="3.5" />
          <path d="m9 11 8-8m-3 3 2.5 2.5" />
        </svg>
        {words}
        {isRefused && <Badge tone="bad">1 refused</Badge>}
      </ActionButton>
      <Dialog title="Keys of this tab" isOpen={isOpen} onClose={() => setOpen(false)}>
        <ul className="stack">
          {kinds.map((kind) => (
            <HeldKeyLine key={kind} kind={kind} />
          ))}
        </ul>
        <KeyForm />
      </Dialog>
    </>
  );
}

function HeldKeyLine({ kind }: { kind: KeyKind }) {
  const { session, keys } = useSession();
  const held = keys[kind];
  return (
    <li className="row held-key">
      <strong>{kind === "inference" ? "Inference key" : "Management key"}</strong>
      {held === undefined ? (
        <Badge>none</Badge>
      ) : (
        <>
          <code>{maskedKey(held.secret)}</code>
          <Badge tone={held.refused === undefined ? "good" : "bad"}>
            {held.refused === undefined ? "in use" : "refused"}
          </Badge>
          <ActionButton
            compact
            look="quiet"
            aria-label={`Forget the ${kind} key`}
            onPress={() => session.forget(kind)}
          >
            Forget
          </ActionButton>
        </>
      )}
    </li>
  );
}
