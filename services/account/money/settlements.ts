import { sql } from "kysely";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { prepared } from "../../../lib/database/prepared-statements.ts";
import type { RefusedEvent } from "../../../lib/events/batch-consumer.ts";
import {
  type BytesOfEvent,
  bytesOfEvent,
  endedAtMs,
  eventFault,
  maxEventBytes,
} from "../../../lib/events/event-message.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { AccountDatabase } from "../store.ts";
import type { MoneyCounters } from "./money-totals.ts";

/*
 * Owns what becomes of the events of requests, by whichever of their two ways they come: reported by the process over
 * RPC, or consumed from the topic.
 * 1. The row of the hold, locked, decides: open is freed and debited, lost is debited, settled changes no money. One that
 *    was released while its `lost` event was on its way becomes lost, as its record does, and moves no money.
 * 2. Only an event of the stored revision, consumed from the topic, makes a hold seen; a report never takes that back.
 * 3. What a hold spent counts on the day that it was held on, whenever it is closed.
 * 4. Without a hold nothing is debited.
 */

/** What became of an event; `unknown` and `closed` changed nothing. */
export type SettlementOutcome = "stored" | "unknown" | "closed";

/** The counters are the process's. */
export interface SettlementOptions {
  readonly database: AccountDatabase;
  readonly counters: MoneyCounters;
  readonly log: Log;
  /** How long an event that was reported may stay unseen on the topic before it is published from here. */
  readonly unseenGraceMs: number;
}

/** Dearest request that can be settled, nano-USD: a million dollars, so that sums never overflow. */
export const maxNanoUsd = 10n ** 15n;

/** Why no hold can be settled with an event that ended before `oldestMs`, or for another fault; in words. */
export function settlementFault(
  event: GenerationEvent,
  oldestMs: number,
  bytes = bytesOfEvent(event),
): string | undefined {
  const fault = eventFault(event);
  if (fault !== undefined) return fault;
  if (endedAtMs(event) < oldestMs) return "ended before what is remembered";
  if (event.costNanoUsd > maxNanoUsd || event.listPriceNanoUsd > maxNanoUsd) return "a price is out of range";
  if (bytes.length > maxEventBytes) return "is too large";
  return undefined;
}

/** Settles holds with events that processes reported over RPC, in one statement; answers in their order. */
export function settleReported(
  options: SettlementOptions,
  events: readonly GenerationEvent[],
  bytesOf = bytesOfEvent,
): Promise<readonly SettlementOutcome[]> {
  return settle(options, events, false, bytesOf);
}

/** Settles holds with events consumed from the topic, in one statement; answers in their order. */
export function settleConsumed(
  options: SettlementOptions,
  events: readonly GenerationEvent[],
  bytesOf = bytesOfEvent,
): Promise<readonly SettlementOutcome[]> {
  return settle(options, events, true, bytesOf); // 2.
}

interface SettlementRow {
  readonly outcome: SettlementOutcome;
  readonly over_run: bigint;
  readonly late: bigint;
}

async function settle(
  options: SettlementOptions,
  events: readonly GenerationEvent[],
  consumed: boolean,
  bytesOf: BytesOfEvent,
): Promise<readonly SettlementOutcome[]> {
  if (events.length === 0) return [];
  // 1., 3., 4.
  const { rows } = await sql<SettlementRow>`${prepared("settle")} SELECT outcome, over_run, late FROM settle(
    ${events.map(({ eventId }) => eventId)},
    ${events.map(({ accountId }) => accountId)},
    ${events.map(({ revision }) => revision)},
    ${events.map(({ costNanoUsd }) => costNanoUsd)},
    ${events.map(({ byok, listPriceNanoUsd }) => (byok ? listPriceNanoUsd : 0n))},
    ${events.map(bytesOf)},
    ${consumed}, make_interval(secs => ${options.unseenGraceMs / 1000})) ORDER BY position`.execute(
    options.database,
  );
  for (const [index, row] of rows.entries()) note(options, row, events[index]);
  return rows.map(({ outcome }) => outcome);
}

/** Counts and logs what must not go unnoticed. */
function note(
  { counters, log }: SettlementOptions,
  { outcome, over_run, late }: SettlementRow,
  event: GenerationEvent | undefined,
): void {
  if (outcome === "stored" && over_run === 0n && late === 0n) return;
  const { eventId: generation_id, accountId: account_id } = event ?? {};
  const fields = { generation_id, account_id };
  if (outcome === "unknown") {
    counters.unknownHolds += 1;
    log.error(fields, "an event without a hold: nothing is debited");
  }
  if (outcome === "closed") {
    counters.closedHoldEvents += 1;
    log.error(fields, "an event for a hold that was refused or released: nothing is debited");
  }
  if (over_run > 0n) {
    counters.overRunNanoUsd += over_run;
    log.warn({ ...fields, over_run_nano_usd: `${over_run}` }, "a request cost more than its hold");
  }
  if (late > 0n) {
    counters.lateRealNanoUsd += late;
    log.warn({ ...fields, late_nano_usd: `${late}` }, "a request cost though its hold was lost");
  }
}

/**
 * Applies events read from the topic to their holds, in one statement, and answers those that have none. How old an
 * event may be is for the consumer to say.
 */
export async function applyEvents(
  options: SettlementOptions,
  events: readonly GenerationEvent[],
  bytesOf = bytesOfEvent,
): Promise<readonly RefusedEvent[]> {
  const faults = events.map((event) => settlementFault(event, 0, bytesOf(event)));
  const applicable = events.filter((_, index) => faults[index] === undefined);
  const outcomes = (await settleConsumed(options, applicable, bytesOf)).values();
  return events.flatMap(({ eventId, revision }, index) => {
    const reason = faults[index] ?? refusals[outcomes.next().value ?? "unknown"];
    return reason === undefined ? [] : { eventId, revision, reason };
  });
}

const refusals = {
  stored: undefined,
  unknown: "no hold has this id",
  closed: "the hold of this id was refused or released",
} as const;
