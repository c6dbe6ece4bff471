import type { ReactNode } from "react";
import { refusalSentence } from "../api/api-failure.ts";
import { KeyForm } from "./key-form.tsx";
import type { KeyKind } from "./session.ts";
import { useSession } from "./session-context.tsx";

const purposes: Readonly<Record<KeyKind, string>> = {
  inference: "An inference key makes speech and images.",
  management: "A management key sees activity and credits and manages keys, provider keys and destinations.",
};

interface KeyGateProps {
  readonly needs: KeyKind;
  readonly children: ReactNode;
}

/**
 * Shows its children to whoever has a key of the kind. When the gateway stops accepting the key, they stay as they are,
 * with all that was typed into them, below the field for another one.
 */
export function KeyGate({ needs, children }: KeyGateProps) {
  const { keys } = useSession();
  const held = keys[needs];
  const isGood = held !== undefined && held.refused === undefined;
  return (
    <>
      {!isGood && <GateCard needs={needs} refused={held?.refused} />}
      {held !== undefined && (
        <div className="gate" inert={!isGood}>
          {children}
        </div>
      )}
    </>
  );
}

function GateCard({ needs, refused }: { needs: KeyKind; refused: string | undefined }) {
  const name = needs === "inference" ? "an inference key" : "a management key";
  return (
    <section className="card gate-card" aria-labelledby={`gate-${needs}`}>
      <div>
        <h2 id={`gate-${needs}`}>
          {refused === undefined ? `This needs ${name}` : "The key stopped working"}
        </h2>
        {refused === undefined ? (
          <p className="soft">{purposes[needs]}</p>
        ) : (
          <p role="alert">
            {refusalSentence(refused)} Nothing on this page is lost: go on with another {needs} key.
          </p>
        )}
      </div>
      <KeyForm needs={needs} />
    </section>
  );
}
