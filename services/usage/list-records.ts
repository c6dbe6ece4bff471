import { sql } from "kysely";
import { readPages } from "../../lib/database/read-pages.ts";
import type { SummarizedRow } from "./convert.ts";
import type { UsageDatabase } from "./store.ts";

/** Which records are listed: those that ended from `from` on and before `to`. */
export interface RecordSpan {
  readonly from: Date;
  readonly to: Date;
  readonly batchSize: number;
}

/** The records of a span as they stand at one instant, in batches, ordered by the bytes of their ids. */
export function listRecords(
  database: UsageDatabase,
  { from, to, batchSize }: RecordSpan,
  signal: AbortSignal,
): AsyncGenerator<readonly SummarizedRow[], void> {
  const query = sql<SummarizedRow>`
    SELECT event_id, revision, account_id, charged_nano_usd, (ended_at AT TIME ZONE 'UTC')::date AS day
    FROM record WHERE ended_at >= ${from.toISOString()}::timestamptz AND ended_at < ${to.toISOString()}::timestamptz
    ORDER BY event_id`;
  return readPages(database, query, signal, batchSize);
}
