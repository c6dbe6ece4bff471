import { type Kysely, type RawBuilder, sql } from "kysely";

const defaultPageSize = 1000;
/** A reader may take its time between two pages. */
const readerTimeoutMs = 60_000;
/** Longest that one page may take: sums over everything, and what is sorted, come with the first. */
const pageTimeoutMs = 600_000;

/**
 * The rows of a query, at most `pageSize` at a time, all as they were when the reading began. Occupies one connection
 * until the last page, until the reader leaves, or until `signal` fires; a reader who rests for a minute loses the rest.
 */
export async function* readPages<DB, R>(
  database: Kysely<DB>,
  query: RawBuilder<R>,
  signal: AbortSignal,
  pageSize = defaultPageSize,
): AsyncGenerator<readonly R[], void> {
  signal.throwIfAborted();
  const transaction = await database.startTransaction().setAccessMode("read only").execute();
  let ended: Promise<unknown> | undefined;
  const end = () => {
    ended ??= transaction
      .rollback()
      .execute()
      .catch(() => undefined);
    return ended;
  };
  // A generator that is abandoned is not always ended.
  signal.addEventListener("abort", end, { once: true });
  try {
    signal.throwIfAborted();
    // Planned for all rows and not, as cursors are by default, for the first ones.
    await sql`SELECT set_config('idle_in_transaction_session_timeout', ${String(readerTimeoutMs)}, true),
      set_config('statement_timeout', ${String(pageTimeoutMs)}, true),
      set_config('cursor_tuple_fraction', '1', true)`.execute(transaction);
    await sql`DECLARE pages NO SCROLL CURSOR FOR ${query}`.execute(transaction);
    for (;;) {
      signal.throwIfAborted();
      const { rows } = await sql<R>`FETCH ${sql.lit(pageSize)} FROM pages`.execute(transaction);
      if (rows.length > 0) yield rows;
      if (rows.length < pageSize) return;
    }
  } finally {
    signal.removeEventListener("abort", end);
    await end();
  }
}
