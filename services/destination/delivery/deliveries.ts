/**
 * Sends what waits for destinations, in the background.
 *
 * 1. Work is claimed only as there is room for it: what is under way is bounded in all, and closer for destinations that
 *    fail or are slow, so that they don't keep others waiting.
 * 2. Each claimed batch is attempted once and reported once; a report that can't be kept leaves the batch to whoever
 *    claims it when the lease has run out.
 * 3. `stop` claims nothing more and lets what is under way end: no attempt is longer than its time.
 */
import { setTimeout as delay } from "node:timers/promises";
import { BatchCall } from "../../../lib/runtime/batch-call.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { DestinationDatabase } from "../store.ts";
import type { Attempter } from "./attempt.ts";
import { type Claim, type ClaimedBatch, claimBatches, isFailing } from "./claim.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";
import { type AttemptReport, keepReports, type ReportOutcome } from "./outcome.ts";

interface DeliveriesOptions {
  readonly database: DestinationDatabase;
  readonly attempter: Attempter;
  readonly limits: DeliveryLimits;
  readonly log: Log;
  /** From 0 to below 1. */
  random(): number;
  /** Most events of a batch of a type. */
  maxBatchEvents(type: string): number;
}

/** What this process has counted since it started. */
export interface DeliveryCounters {
  /** Attempts under way. */
  readonly inFlight: number;
  /** Attempts that receivers took. */
  readonly deliveredBatches: number;
  /** Events in them. */
  readonly deliveredEvents: number;
  /** Attempts that receivers did not take. */
  readonly failedAttempts: number;
  /** Batches whose outcome came too late, or could not be kept: they go out again. */
  readonly repeatedBatches: number;
  /** Destinations paused after sustained failure. */
  readonly pauses: number;
}

/** The counters of a process that has not started. */
export const noneCounted: DeliveryCounters = {
  inFlight: 0,
  deliveredBatches: 0,
  deliveredEvents: 0,
  failedAttempts: 0,
  repeatedBatches: 0,
  pauses: 0,
};

const maxReports = 64;
const maxReportsInFlight = 2;
const retryClaimMs = 1000;
/** Shortest time from one claim to the next. */
const claimPaceMs = 20;
const tooLarge = 413;

/** Running deliveries, from the start; a database that is away is waited for. */
export class Deliveries {
  readonly #counters: { -readonly [N in keyof DeliveryCounters]: number } = { ...noneCounted };
  readonly #options: DeliveriesOptions;
  /** Attempts, and whether their destinations are failing. */
  readonly #underWay = new Map<Promise<void>, boolean>();
  readonly #wakeUp = new WakeUp();
  readonly #reports: BatchCall<AttemptReport, ReportOutcome>;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#reports = new BatchCall({
      run: (reports: readonly AttemptReport[]) => keepReports(options, reports),
      maxItems: maxReports,
      maxInFlight: maxReportsInFlight,
    });
    this.#running = this.#run();
  }

  get counters(): DeliveryCounters {
    return { ...this.#counters, inFlight: this.#underWay.size };
  }

  /** Looks at once for what is due. */
  wake(): void {
    this.#wakeUp.wake();
  }

  /** Resolves when nothing is under way any more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#wakeUp.wake();
    await this.#running;
    await Promise.all(this.#underWay.keys()); // 3.
  }

  async #run(): Promise<void> {
    const { limits, log } = this.#options;
    let isAway = false;
    while (!this.#stopping.signal.aborted) {
      let waitMs: number | undefined;
      try {
        waitMs = await this.#claim();
        if (isAway) log.info("deliveries go on");
        isAway = false;
      } catch (thrown) {
        if (!isAway) log.warn({ err: thrown }, "deliveries can't be claimed now");
        isAway = true;
        waitMs = retryClaimMs;
      }
      await this.#wakeUp.wait(Math.min(waitMs, limits.pollMs));
      // What comes meanwhile is claimed together.
      if (!this.#stopping.signal.aborted) await delay(claimPaceMs);
    }
  }

  /** Claims as much as there is room for and says how long to wait until there may be more. */
  async #claim(): Promise<number> {
    const { database, limits, maxBatchEvents } = this.#options;
    const failingNow = [...this.#underWay.values()].filter(Boolean).length;
    const failing = limits.maxFailingInFlight - failingNow; // 1.
    const healthy = limits.maxHealthyInFlight - (this.#underWay.size - failingNow);
    const claim = await claimBatches({ database, limits, healthy, failing, maxBatchEvents });
    for (const batch of claim.batches) this.#start(batch);
    return waitMsAfter(claim);
  }

  #start(batch: ClaimedBatch): void {
    const work = this.#deliver(batch).finally(() => {
      this.#underWay.delete(work);
      this.#wakeUp.wake();
    });
    this.#underWay.set(work, isFailing(batch));
  }

  async #deliver(batch: ClaimedBatch): Promise<void> {
    const { attempter, limits, log, random } = this.#options;
    const { isTaken, status, cause, retryAfterMs, latencyMs } = await attempter.deliver(batch); // 2.
    const failures = batch.failures + 1;
    const report: AttemptReport = {
      destinationId: batch.destination_id,
      leaseId: batch.lease_id,
      version: batch.version,
      batchId: batch.batch_id,
      batchThrough: batch.batch_through,
      eventCount: batch.events.length,
      attempt: batch.attempts + 1,
      isTaken,
      isFull: batch.isFull,
      isTooLarge: status === tooLarge && batch.events.length > 1,
      status,
      latencyMs,
      cause,
      retryMs: isTaken ? 0 : retryDelayMs({ limits, failures, retryAfterMs, random }),
    };
    this.#count(report);
    try {
      this.#log(report, await this.#reports.call(report)); // 2.
    } catch (thrown) {
      this.#counters.repeatedBatches += 1;
      log.warn({ err: thrown, destination_id: batch.destination_id }, "a delivery could not be noted");
    }
  }

  #count({ isTaken, eventCount }: AttemptReport): void {
    if (isTaken) {
      this.#counters.deliveredBatches += 1;
      this.#counters.deliveredEvents += eventCount;
    } else this.#counters.failedAttempts += 1;
  }

  #log(report: AttemptReport, outcome: ReportOutcome): void {
    const { log } = this.#options;
    const { destinationId, batchId, attempt, status, cause, isTaken } = report;
    const line = { destination_id: destinationId, batch_id: batchId, attempt, status, cause };
    if (outcome === "overtaken") this.#counters.repeatedBatches += 1;
    if (outcome === "paused") this.#counters.pauses += 1;
    if (outcome === "paused") log.warn(line, "destination paused after sustained failure");
    else if (!isTaken) log.info(line, "delivery failed");
    else log.debug(line, "delivered");
  }
}

/** What is due but was not claimed is locked for a moment, or waits for room. */
function waitMsAfter({ nextDueMs = Infinity }: Claim): number {
  return Math.max(0, nextDueMs);
}

/** What decides about the pause after a failure. */
interface BackOff {
  readonly limits: Pick<DeliveryLimits, "firstRetryMs" | "maxRetryMs" | "maxRetryAfterMs">;
  /** How many attempts failed in a row, this one included. */
  readonly failures: number;
  /** How long the receiver asked to wait, milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** From 0 to below 1. */
  random(): number;
}

/**
 * How long to wait after a failure, milliseconds: twice as long after each, up to a bound, of which half is left to
 * chance, so that many receivers that fail at once are not all tried at once; never less than the receiver asked for,
 * within reason.
 */
export function retryDelayMs({ limits, failures, retryAfterMs = 0, random }: BackOff): number {
  const doubled = limits.firstRetryMs * 2 ** Math.min(failures - 1, 30);
  const ownMs = Math.min(doubled, limits.maxRetryMs) * (0.5 + random() / 2);
  return Math.round(Math.max(ownMs, Math.min(retryAfterMs, limits.maxRetryAfterMs)));
}

/** A wait that others can end. One who waits at a time; a wake-up that comes while nobody waits ends the next wait. */
class WakeUp {
  #isDue = false;
  #end: (() => void) | undefined;

  wake(): void {
    this.#isDue = true;
    this.#end?.();
  }

  /** Resolves after so many milliseconds, or when woken. */
  async wait(ms: number): Promise<void> {
    if (!this.#isDue) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, ms);
      this.#end = resolve;
      await promise;
      clearTimeout(timer);
      this.#end = undefined;
    }
    this.#isDue = false;
  }
}
