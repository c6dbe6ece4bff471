import { type RawBuilder, sql } from "kysely";
import type { AccountDatabase } from "./store.ts";

const pageSize = 1000;
/** A reader may take its time between two pages. */
const readerTimeoutMs = 60_000;
/** Longest that one page may take: sums over everything come with the first. */
const pageTimeoutMs = 600_000;

/**
 * The rows of a query, at most 1,000 at a time, all as they were when the reading began. Occupies one connection until
 * the last page, until the reader leaves, or until `signal` fires.
 */
export async function* readPages<R>(
  database: AccountDatabase,
  query: RawBuilder<R>,
  signal: AbortSignal,
): AsyncGenerator<readonly R[]> {
  const transaction = await database.startTransaction().execute();
  const leave = () =>
    void transaction
      .rollback()
      .execute()
      .catch(() => undefined);
  signal.addEventListener("abort", leave, { once: true });
  try {
    signal.throwIfAborted();
    await sql`SELECT set_config('idle_in_transaction_session_timeout', ${String(readerTimeoutMs)}, true),
      set_config('statement_timeout', ${String(pageTimeoutMs)}, true)`.execute(transaction);
    await sql`DECLARE pages NO SCROLL CURSOR FOR ${query}`.execute(transaction);
    for (;;) {
      const { rows } = await sql<R>`FETCH ${sql.lit(pageSize)} FROM pages`.execute(transaction);
      if (rows.length > 0) yield rows;
      if (rows.length < pageSize) return;
    }
  } finally {
    signal.removeEventListener("abort", leave);
    if (!transaction.isCommitted && !transaction.isRolledBack) await transaction.rollback().execute();
  }
}
