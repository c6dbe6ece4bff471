/**
 * Compares the roll-up of a day with the records of that day, and mends it.
 *
 * 1. Both are read in one statement, so in one snapshot: an event under way is in both or in neither.
 * 2. A day is mended while nobody else writes it, and only when a comparison that disturbs nobody has found a
 *    difference.
 * 3. A day whose records may have been pruned is left alone.
 */
import { sql } from "kysely";
import { amountTerms } from "./amounts.ts";
import { addDays } from "./day.ts";
import { claimDay } from "./locks.ts";
import { keptFrom } from "./retention.ts";
import type { UsageDatabase, UsageTransaction } from "./store.ts";

/** What was found on a day. */
export interface RebuiltDay {
  readonly day: string;
  /** Whether all its records are there; if not, nothing was compared. */
  readonly complete: boolean;
  /** How many cells of the roll-up were not what its records add up to. */
  readonly differingCells: number;
}

/** Longest comparison of one day, milliseconds. */
const compareTimeoutMs = 600_000;

/** Compares a day, `YYYY-MM-DD`, and mends it unless `dryRun`. Records of days before `firstDay` count as pruned. */
export async function rebuildDay(
  database: UsageDatabase,
  day: string,
  { firstDay, dryRun }: { readonly firstDay: string; readonly dryRun: boolean },
): Promise<RebuiltDay> {
  const compared = await database
    .transaction()
    .setIsolationLevel("repeatable read") // 1.
    .setAccessMode("read only")
    .execute((transaction) => ifComplete(transaction, day, firstDay, countDifferences));
  if (dryRun || compared.differingCells === 0) return compared; // 2.
  return database
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await claimDay(transaction, day); // 2.
      return ifComplete(transaction, day, firstDay, mendDifferences);
    });
}

async function ifComplete(
  transaction: UsageTransaction,
  day: string,
  firstDay: string,
  work: (transaction: UsageTransaction, day: string) => Promise<number>,
): Promise<RebuiltDay> {
  if (day < firstDay || day < (await keptFrom(transaction)))
    // 3.
    return { day, complete: false, differingCells: 0 };
  await sql`SELECT set_config('statement_timeout', ${String(compareTimeoutMs)}, true)`.execute(transaction);
  return { day, complete: true, differingCells: await work(transaction, day) };
}

async function countDifferences(transaction: UsageTransaction, day: string): Promise<number> {
  const { rows } = await sql<{ count: bigint }>`
    WITH ${differences(day)} SELECT count(*) AS count FROM difference`.execute(transaction);
  return Number(rows[0]?.count ?? 0n);
}

async function mendDifferences(transaction: UsageTransaction, day: string): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    WITH ${differences(day)}
    INSERT INTO activity (day, account_id, endpoint_id, key_hash, member_id, naming_id, requests,
      ${amountTerms()}, last_ended_at)
    SELECT ${day}::date, difference.* FROM difference
    ON CONFLICT (account_id, day, endpoint_id, key_hash, member_id, naming_id) DO UPDATE SET
      requests = excluded.requests,
      ${amountTerms((amount) => sql`${amount} = excluded.${amount}`)},
      last_ended_at = excluded.last_ended_at`.execute(transaction);
  return Number(numAffectedRows);
}

/** `difference`: what the cells of a day should be, where they are not. A cell of zeros is as good as none. */
function differences(day: string) {
  return sql`
    truth AS (
      SELECT account_id, endpoint_id, key_hash, member_id, naming_id, count(*) AS requests,
        ${amountTerms((amount) => sql`sum(${amount})::bigint AS ${amount}`)},
        max(ended_at) FILTER (WHERE revision > 0) AS last_ended_at
      FROM record
      WHERE ended_at >= ${`${day}T00:00:00Z`}::timestamptz AND ended_at < ${`${addDays(day, 1)}T00:00:00Z`}::timestamptz
      GROUP BY account_id, endpoint_id, key_hash, member_id, naming_id
    ),
    cell AS (SELECT * FROM activity WHERE day = ${day}),
    difference AS (
      SELECT account_id, endpoint_id, key_hash, member_id, naming_id, coalesce(truth.requests, 0) AS requests,
        ${amountTerms((amount) => sql`coalesce(truth.${amount}, 0) AS ${amount}`)}, truth.last_ended_at
      FROM truth FULL JOIN cell USING (account_id, endpoint_id, key_hash, member_id, naming_id)
      WHERE (coalesce(truth.requests, 0), ${amountTerms((amount) => sql`coalesce(truth.${amount}, 0)`)},
          truth.last_ended_at)
        IS DISTINCT FROM (coalesce(cell.requests, 0), ${amountTerms((amount) => sql`coalesce(cell.${amount}, 0)`)},
          cell.last_ended_at)
    )`;
}
