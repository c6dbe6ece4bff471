import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import type { RefusedEvent } from "../../../lib/events/batch-consumer.ts";
import { type SettlementOptions, settleConsumed, settlementFault } from "./settlements.ts";

/**
 * Applies events read from the topic to their holds, in one statement, and answers those that have none. How old an
 * event may be is for the consumer to say.
 */
export async function applyEvents(
  options: SettlementOptions,
  events: readonly GenerationEvent[],
): Promise<readonly RefusedEvent[]> {
  const faults = events.map((event) => settlementFault(event, 0));
  const applicable = events.filter((_, index) => faults[index] === undefined);
  const outcomes = (await settleConsumed(options, applicable)).values();
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
