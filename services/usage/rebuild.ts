/**
 * Compares the roll-ups of a day, its own and those of its hours, with the records of that day, and mends them.
 *
 * 1. Both are read in one statement, so in one snapshot: an event under way is in both or in neither.
 * 2. A day is mended while nobody else writes it, and only when a comparison that disturbs nobody has found a
 *    difference.
 * 3. A day whose records may have been pruned is left alone, and so are its hours where they are pruned.
 * 4. Part of what is summed is what records are listed by, so what is not listed is listed first.
 */
import { sql } from "kysely";
import { amountOfRecord, amountTerms } from "./amounts.ts";
import { addDays } from "./day.ts";
import { listDay } from "./generations/listing.ts";
import { claimDay } from "./locks.ts";
import { readRetention } from "./retention.ts";
import { byDay, byHour, type RollUpTable } from "./roll-up.ts";
import type { UsageDatabase, UsageTransaction } from "./store.ts";

/** What was found on a day. */
export interface RebuiltDay {
  readonly day: string;
  /** Whether all its records are there; if not, nothing was compared. */
  readonly complete: boolean;
  /** How many cells of the roll-up by day were not what its records add up to. */
  readonly differingCells: number;
  /** The same of the roll-up by hour, where the hours of the day are kept. */
  readonly differingHourCells: number;
}

/** Longest comparison of one day, milliseconds. */
const compareTimeoutMs = 600_000;

/** Compares a day, `YYYY-MM-DD`, and mends it unless `dryRun`. Records of days before `firstDay` count as pruned. */
export async function rebuildDay(
  database: UsageDatabase,
  day: string,
  { firstDay, dryRun }: { readonly firstDay: string; readonly dryRun: boolean },
): Promise<RebuiltDay> {
  if (!dryRun && day >= firstDay) await listDay(database, day); // 4.
  const compared = await database
    .transaction()
    .setIsolationLevel("repeatable read") // 1.
    .setAccessMode("read only")
    .execute((transaction) => ifComplete(transaction, day, firstDay, countDifferences));
  if (dryRun || (compared.differingCells === 0 && compared.differingHourCells === 0)) return compared; // 2.
  return database
    .transaction()
    .setIsolationLevel("read committed")
    .execute(async (transaction) => {
      await claimDay(transaction, day); // 2.
      return ifComplete(transaction, day, firstDay, mendDifferences);
    });
}

type Work = (transaction: UsageTransaction, table: RollUpTable, day: string) => Promise<number>;

async function ifComplete(
  transaction: UsageTransaction,
  day: string,
  firstDay: string,
  work: Work,
): Promise<RebuiltDay> {
  const { from, hoursFrom } = await readRetention(transaction);
  if (day < firstDay || day < from) return { day, complete: false, differingCells: 0, differingHourCells: 0 }; // 3.
  await sql`SELECT set_config('statement_timeout', ${String(compareTimeoutMs)}, true)`.execute(transaction);
  const differingCells = await work(transaction, byDay, day);
  const differingHourCells = day < hoursFrom ? 0 : await work(transaction, byHour, day); // 3.
  return { day, complete: true, differingCells, differingHourCells };
}

const countDifferences: Work = async (transaction, table, day) => {
  const { rows } = await sql<{ count: bigint }>`
    WITH ${differences(table, day)} SELECT count(*) AS count FROM difference`.execute(transaction);
  return Number(rows[0]?.count ?? 0n);
};

const mendDifferences: Work = async (transaction, table, day) => {
  const period = sql.ref(table.period);
  const { numAffectedRows = 0n } = await sql`
    WITH ${differences(table, day)}
    INSERT INTO ${sql.ref(table.name)} (${period}, account_id, endpoint_id, key_hash, member_id, naming_id, requests,
      ${amountTerms()}, last_ended_at)
    SELECT * FROM difference
    ON CONFLICT (account_id, ${period}, endpoint_id, key_hash, member_id, naming_id) DO UPDATE SET
      requests = excluded.requests,
      ${amountTerms((amount) => sql`${amount} = excluded.${amount}`)},
      last_ended_at = excluded.last_ended_at`.execute(transaction);
  return Number(numAffectedRows);
};

/** `difference`: what the cells of a day should be, where they are not. A cell of zeros is as good as none. */
function differences({ name, period: column, type, periodOfRecord }: RollUpTable, day: string) {
  const period = sql.ref(column);
  const [start, end] = [day, addDays(day, 1)].map((edge) => sql`${`${edge}T00:00:00Z`}::timestamptz`);
  const edges = [day, addDays(day, 1)].map((edge) => (column === "day" ? edge : `${edge}T00:00:00Z`));
  const owner = sql`account_id, endpoint_id, key_hash, member_id, naming_id`;
  return sql`
    truth AS (
      SELECT ${periodOfRecord} AS ${period}, record.account_id, endpoint_id, record.key_hash, record.member_id,
        naming_id, count(*) AS requests,
        ${amountTerms((amount, name) => sql`coalesce(sum(${amountOfRecord(name)}), 0)::bigint AS ${amount}`)},
        max(record.ended_at) FILTER (WHERE record.revision > 0) AS last_ended_at
      FROM record LEFT JOIN listing ON listing.event_id = record.event_id
      WHERE record.ended_at >= ${start} AND record.ended_at < ${end}
      GROUP BY 1, 2, 3, 4, 5, 6
    ),
    cell AS (
      SELECT * FROM ${sql.ref(name)}
      WHERE ${period} >= ${edges[0]}::${type} AND ${period} < ${edges[1]}::${type}
    ),
    difference AS (
      SELECT ${period}, ${owner}, coalesce(truth.requests, 0) AS requests,
        ${amountTerms((amount) => sql`coalesce(truth.${amount}, 0) AS ${amount}`)}, truth.last_ended_at
      FROM truth FULL JOIN cell USING (${period}, ${owner})
      WHERE (coalesce(truth.requests, 0), ${amountTerms((amount) => sql`coalesce(truth.${amount}, 0)`)},
          truth.last_ended_at)
        IS DISTINCT FROM (coalesce(cell.requests, 0), ${amountTerms((amount) => sql`coalesce(cell.${amount}, 0)`)},
          cell.last_ended_at)
    )`;
}
