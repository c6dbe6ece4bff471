/**
 * How far back records reach. A day that lies further back than they are kept is given up for good first and its records
 * are deleted after that, in steps, by whichever replica gets to it. Roll-ups stay.
 */
import { sql } from "kysely";
import { claimHorizon } from "./locks.ts";
import type { UsageDatabase, UsageTransaction } from "./store.ts";

/** The first day, `YYYY-MM-DD`, whose records were never pruned. */
export async function keptFrom(database: UsageDatabase | UsageTransaction): Promise<string> {
  const row = await database.selectFrom("retention").select("kept_from").executeTakeFirstOrThrow();
  return row.kept_from;
}

/** Gives up the days before `day`, unless they were before. From now on no event of theirs is recorded. */
export async function giveUpDaysBefore(database: UsageDatabase, day: string): Promise<void> {
  if ((await keptFrom(database)) >= day) return;
  await database.transaction().execute(async (transaction) => {
    await claimHorizon(transaction);
    await transaction.updateTable("retention").set({ kept_from: day }).where("kept_from", "<", day).execute();
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
