import type { ReactNode } from "react";

/** A word about a thing's state. The colour says nothing that the word does not. */
export function Badge({ tone, children }: { tone?: "good" | "warn" | "bad"; children: ReactNode }) {
  return <span className={tone === undefined ? "badge" : `badge ${tone}`}>{children}</span>;
}
