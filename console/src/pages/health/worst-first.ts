import type { Health } from "../../kit/health-text.tsx";

const breakerRank = { open: 0, partly_open: 1, closed: 2 } as const;

/** What needs a look first stands first: open breakers, then errors, then what is used; otherwise the order stays. */
export function worstFirst<T extends { readonly health: Health }>(rows: readonly T[]): T[] {
  return rows.toSorted(
    ({ health: one }, { health: other }) =>
      breakerRank[one.breaker] - breakerRank[other.breaker] ||
      (other.error_share ?? 0) - (one.error_share ?? 0) ||
      other.attempts - one.attempts,
  );
}
