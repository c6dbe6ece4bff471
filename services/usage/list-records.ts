import { type ControlledTransaction, sql } from "kysely";
import type { SummarizedRow } from "./convert.ts";
import type { UsageDatabase, UsageTables } from "./store.ts";

/** Which records are listed: those that ended from `from` on and before `to`. */
export interface RecordSpan {
  readonly from: Date;
  readonly to: Date;
  readonly batchSize: number;
}

/** Longest that sorting the records of a span may take, milliseconds. */
const sortTimeoutMs = 600_000;

/**
 * The records of a span as they stand at one instant, in batches, ordered by the bytes of their ids. Each is kept in
 * the database until it is asked for; a reader that pauses for longer than 15 s loses the rest.
 */
export async function* listRecords(
  database: UsageDatabase,
  span: RecordSpan,
  signal: AbortSignal,
): AsyncGenerator<readonly SummarizedRow[], void> {
  const transaction = await database.startTransaction().setAccessMode("read only").execute();
  let ended: Promise<unknown> | undefined;
  const end = () => {
    ended ??= transaction
      .rollback()
      .execute()
      .catch(() => undefined);
    return ended;
  };
  // A generator that is abandoned is not always told so.
  signal.addEventListener("abort", end, { once: true });
  try {
    await openCursor(transaction, span);
    for (;;) {
      signal.throwIfAborted();
      const { rows } = await sql<SummarizedRow>`
        FETCH FORWARD ${sql.lit(span.batchSize)} FROM listed`.execute(transaction);
      if (rows.length > 0) yield rows;
      if (rows.length < span.batchSize) return;
    }
  } finally {
    signal.removeEventListener("abort", end);
    await end();
  }
}

/** Plans for all rows and not, as cursors are by default, for the first ones: those come by a walk over every record. */
async function openCursor(
  transaction: ControlledTransaction<UsageTables>,
  { from, to }: RecordSpan,
): Promise<void> {
  await sql`SELECT set_config('statement_timeout', ${String(sortTimeoutMs)}, true),
    set_config('cursor_tuple_fraction', '1', true)`.execute(transaction);
  await sql`
    DECLARE listed NO SCROLL CURSOR FOR
    SELECT event_id, revision, account_id, charged_nano_usd, (ended_at AT TIME ZONE 'UTC')::date AS day
    FROM record WHERE ended_at >= ${from.toISOString()}::timestamptz AND ended_at < ${to.toISOString()}::timestamptz
    ORDER BY event_id`.execute(transaction);
}
