/** What the order of rows needs to know. */
export interface Row {
  readonly id: string;
  readonly ended_at: string;
}

/** What a look at the newest rows adds to those that are shown. */
export interface Newcomers<T> {
  readonly rows: readonly T[];
  /** Whether there may be more between them and what is shown, which the look did not reach. */
  readonly hasGap: boolean;
}

/**
 * Which of the newest rows are not shown yet. `newest` is a first page, shorter than `limit` where there are no more. With
 * `hasOlder`, rows beyond the last one shown are of pages that were not asked for yet, and not new.
 */
export function newcomersOf<T extends Row>(
  shown: readonly T[],
  newest: readonly T[],
  { limit, hasOlder }: { limit: number; hasOlder: boolean },
): Newcomers<T> {
  const known = new Set(shown.map(({ id }) => id));
  const last = hasOlder ? (shown.at(-1)?.ended_at ?? "") : "";
  const rows = newest.filter(({ id, ended_at }) => !known.has(id) && ended_at > last);
  return { rows, hasGap: rows.length > 0 && rows.length === newest.length && newest.length === limit };
}

/** Rows with newcomers among them, what ended last first. */
export function merged<T extends Row>(shown: readonly T[], newcomers: readonly T[]): T[] {
  return [...newcomers, ...shown].sort((one, other) =>
    one.ended_at === other.ended_at ? 0 : one.ended_at < other.ended_at ? 1 : -1,
  );
}
