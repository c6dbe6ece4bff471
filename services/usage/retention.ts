/**
 * How far back records reach. A day that lies further back than they are kept is given up for good first and its records
 * are deleted after that, in steps, by whichever replica gets to it. Sums by hour likewise, sooner; those by day stay.
 */
import { sql } from "kysely";
import { claimHorizon } from "./locks.ts";
import type { UsageDatabase, UsageTransaction } from "./store.ts";

/** The first day, `YYYY-MM-DD`, whose records were never pruned. */
export async function keptFrom(database: UsageDatabase | UsageTransaction): Promise<string> {
  const row = await database.selectFrom("retention").select("kept_from").executeTakeFirstOrThrow();
  return row.kept_from;
}

/** The first days, `YYYY-MM-DD`, of which records and sums by hour were never pruned. */
export async function readRetention(
  transaction: UsageTransaction,
): Promise<{ readonly from: string; readonly hoursFrom: string }> {
  const row = await transaction.selectFrom("retention").selectAll().executeTakeFirstOrThrow();
  return { from: row.kept_from, hoursFrom: row.hours_kept_from };
}

/** Gives up the days before `day`, unless they were before. From now on no event of theirs is recorded. */
export async function giveUpDaysBefore(database: UsageDatabase, day: string): Promise<void> {
  await moveHorizon(database, "kept_from", day);
}

/** Gives up the hours of the days before `day`. From now on an event of theirs changes its day alone. */
export async function giveUpHoursBefore(database: UsageDatabase, day: string): Promise<void> {
  await moveHorizon(database, "hours_kept_from", day);
}

async function moveHorizon(
  database: UsageDatabase,
  column: "kept_from" | "hours_kept_from",
  day: string,
): Promise<void> {
  const standing = await database.selectFrom("retention").select(column).executeTakeFirstOrThrow();
  if (standing[column] >= day) return;
  await database.transaction().execute(async (transaction) => {
    await claimHorizon(transaction);
    await transaction
      .updateTable("retention")
      .set({ [column]: day })
      .where(column, "<", day)
      .execute();
  });
}

/** Deletes at most so many records of days that were given up, those that no other replica deletes; returns how many. */
export async function pruneStep(database: UsageDatabase, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM record WHERE event_id = ANY(ARRAY(
      SELECT event_id FROM record
      WHERE ended_at < (SELECT kept_from::timestamp AT TIME ZONE 'UTC' FROM retention)
      ORDER BY ended_at LIMIT ${limit} FOR UPDATE SKIP LOCKED))`.execute(database);
  return Number(numAffectedRows);
}

/** The same of sums by hour. */
export async function pruneHoursStep(database: UsageDatabase, limit: number): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    DELETE FROM activity_hour WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM activity_hour
      WHERE hour < (SELECT hours_kept_from::timestamp AT TIME ZONE 'UTC' FROM retention)
      ORDER BY hour LIMIT ${limit} FOR UPDATE SKIP LOCKED))`.execute(database);
  return Number(numAffectedRows);
}
