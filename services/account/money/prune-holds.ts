import { sql } from "kysely";
import type { AccountDatabase } from "../store.ts";
import type { MoneyCounters } from "./money-totals.ts";

interface PruneHoldsOptions {
  readonly database: AccountDatabase;
  readonly counters: MoneyCounters;
  /** How long usage records are kept; holds are kept for longer. */
  readonly retentionDays: number;
  /** How many rows are deleted at once; 1,000 unless given. */
  readonly batchSize?: number;
}

/** Days that a hold outlives the usage record of its request, and so any event that is still applied. */
const marginDays = 2;
const defaultBatchSize = 1000;

/**
 * Deletes a batch of closed holds whose retention is over and says whether there may be more. An open hold, and a
 * settled one whose event was not consumed from the topic, is never deleted.
 */
export async function pruneHolds(options: PruneHoldsOptions): Promise<boolean> {
  const { database, counters, retentionDays, batchSize = defaultBatchSize } = options;
  const end = sql`now() - make_interval(days => ${retentionDays + marginDays})`;
  const { rows } = await sql<{ pruned: bigint }>`
    WITH deleted AS (
      DELETE FROM hold WHERE id IN (
        SELECT id FROM hold
        WHERE deadline < ${end} AND closed_at < ${end} AND (state IN ('released', 'refused') OR seen)
        ORDER BY deadline LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
      ) RETURNING id
    )
    SELECT count(*) AS pruned FROM deleted`.execute(database);
  const pruned = Number(rows[0]?.pruned ?? 0n);
  counters.prunedHolds += pruned;
  return pruned === batchSize;
}
