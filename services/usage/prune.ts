import { setTimeout as delay } from "node:timers/promises";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { type Repeating, repeat } from "../../lib/runtime/repeat.ts";
import { addDays, dayOfMs } from "./day.ts";
import { giveUpDaysBefore, giveUpHoursBefore, pruneHoursStep, pruneStep } from "./retention.ts";
import type { UsageDatabase } from "./store.ts";

/** Times in milliseconds. */
interface PrunerOptions {
  readonly database: UsageDatabase;
  readonly log: Log;
  readonly clock: Clock;
  /** How many whole days records are kept after the one they are counted on. */
  readonly retentionDays: number;
  /** How often it looks; 10 minutes unless given. */
  readonly intervalMs?: number;
  /** Most records deleted at once; 1,000 unless given. */
  readonly stepRecords?: number;
}

const pauseMs = 20;

/** The first day whose records are kept, `YYYY-MM-DD`. */
export function firstKeptDay(nowMs: number, retentionDays: number): string {
  return addDays(dayOfMs(nowMs), -retentionDays);
}

/** Deletes what is kept no longer, in the background. */
export function startPruner(options: PrunerOptions): Repeating {
  const { log, intervalMs: pauseMs = 600_000 } = options;
  const run = async (signal: AbortSignal) => {
    const pruned = await prune(options, signal);
    if (pruned > 0) log.info({ records: pruned }, "records pruned");
    return false;
  };
  return repeat({ name: "prune records", run, pauseMs, log });
}

/** How many whole days sums by hour are kept after the one they are of. */
const hourDays = 8;

/** The first day whose sums by hour are kept, `YYYY-MM-DD`. */
export function firstDayOfHours(nowMs: number): string {
  return addDays(dayOfMs(nowMs), -hourDays);
}

async function prune(options: PrunerOptions, signal: AbortSignal): Promise<number> {
  const { database, clock, retentionDays } = options;
  await giveUpDaysBefore(database, firstKeptDay(clock.nowMs(), retentionDays));
  await giveUpHoursBefore(database, firstDayOfHours(clock.nowMs()));
  await inSteps(options, pruneHoursStep, signal);
  return inSteps(options, pruneStep, signal);
}

async function inSteps(
  { database, stepRecords = 1000 }: PrunerOptions,
  step: typeof pruneStep,
  signal: AbortSignal,
): Promise<number> {
  let pruned = 0;
  while (!signal.aborted) {
    const rows = await step(database, stepRecords);
    pruned += rows;
    if (rows < stepRecords) break;
    await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
  }
  return pruned;
}
