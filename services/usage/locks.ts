/**
 * Who may touch which day while something larger is under way. All are advisory locks that a transaction holds to its
 * end, taken in the order of this list:
 *
 * 1. The horizon, shared by whoever writes records or compares them, claimed by who moves it: no record of a day comes
 *    in once its day has been given up to pruning.
 * 2. The mender's own: one day is mended at a time.
 * 3. A day, shared by whoever writes records of it, claimed by who mends its roll-up. A writer that finds only then
 *    that a record leaves another day shares that one too: a mender holds one day and waits for no second.
 */
import { sql } from "kysely";
import { dayNumber } from "./day.ts";
import type { UsageTransaction } from "./store.ts";

/** First key of the locks; the second is the number of a day or one of these, which no day has. */
const lockClass = 0x7573_6765;
const horizonKey = -1;
const menderKey = -2;

/** Shares the horizon and the days. */
export async function shareDays(transaction: UsageTransaction, days: Iterable<string>): Promise<void> {
  const keys = [...new Set(days)].map(dayNumber).sort((a, b) => a - b);
  await sql`SELECT pg_advisory_xact_lock_shared(${lockClass}, key)
    FROM unnest(${[horizonKey, ...keys]}::int[]) AS key`.execute(transaction); // 1., 3.
}

/** Claims a day for mending its roll-up, and shares the horizon. */
export async function claimDay(transaction: UsageTransaction, day: string): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock_shared(${lockClass}, ${horizonKey})`.execute(transaction); // 1.
  for (const key of [menderKey, dayNumber(day)]) {
    // 2., 3.
    await sql`SELECT pg_advisory_xact_lock(${lockClass}, ${key})`.execute(transaction);
  }
}

/** Claims the horizon, to move it. */
export async function claimHorizon(transaction: UsageTransaction): Promise<void> {
  await sql`SELECT pg_advisory_xact_lock(${lockClass}, ${horizonKey})`.execute(transaction); // 1.
}
