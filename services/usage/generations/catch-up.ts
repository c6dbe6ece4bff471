/**
 * Derives what records lack that a release before this one wrote: day by day, newest first, in small steps, by whichever
 * replica gets to it. Which days those are stands in the table `catch_up`, which a migration fills.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../../lib/runtime/clock.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import { type Repeating, repeat } from "../../../lib/runtime/repeat.ts";
import { addDays, dayOfMs } from "../day.ts";
import { rebuildDay } from "../rebuild.ts";
import { keptFrom } from "../retention.ts";
import type { UsageDatabase } from "../store.ts";
import { listDay } from "./listing.ts";

interface CatchUpOptions {
  readonly database: UsageDatabase;
  readonly log: Log;
  readonly clock: Clock;
  /** How often it looks, milliseconds; 5 minutes unless given. */
  readonly intervalMs?: number;
}

/** Between two steps, so that requests come first. */
const stepPauseMs = 20;

/** Catches up in the background. A day is done once it has been over for a day: until then the release before may write. */
export function startCatchUp(options: CatchUpOptions): Repeating {
  const { database, log, clock, intervalMs: pauseMs = 300_000 } = options;
  const run = async (signal: AbortSignal) => {
    const today = dayOfMs(clock.nowMs());
    for (const day of await daysToCatchUp(database, today)) {
      if (signal.aborted) return false;
      const records = await catchUpDay(database, day, signal);
      if (records > 0) log.info({ day, records }, "records listed that were not");
      if (day < addDays(today, -1)) await database.deleteFrom("catch_up").where("day", "=", day).execute();
    }
    return false;
  };
  return repeat({ name: "catch up on what records lack", run, pauseMs, log });
}

async function daysToCatchUp(database: UsageDatabase, today: string): Promise<readonly string[]> {
  const rows = await database
    .selectFrom("catch_up")
    .select("day")
    .where("day", "<=", today)
    .orderBy("day", "desc")
    .execute();
  return rows.map(({ day }) => day);
}

async function catchUpDay(database: UsageDatabase, day: string, signal: AbortSignal): Promise<number> {
  const firstDay = await keptFrom(database);
  if (day < firstDay) return 0;
  const listed = await listDay(database, day, () => delay(stepPauseMs, undefined, { signal, ref: false }));
  await rebuildDay(database, day, { firstDay, dryRun: false });
  return listed;
}
