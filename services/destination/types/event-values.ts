import { toJson } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Api, Outcome } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { wordOf } from "../../../lib/limits/words.ts";

/** An integer as receivers get it: a number where that is exact, beyond 2^53 its decimal digits. */
export function toWireInteger(value: bigint): number | string {
  return BigInt.asIntN(54, value) === value ? Number(value) : value.toString();
}

/** The word for how a generation or an attempt ended. */
export function outcomeWord(outcome: Outcome): string {
  return (wordOf(Outcome, outcome) ?? "unspecified").toLowerCase();
}

/** The word for an operation, which is also what it makes. */
export function apiWord(api: Api): string {
  return (wordOf(Api, api) ?? "unspecified").toLowerCase();
}

/** From one instant to another, whole milliseconds; 0 where the second comes first or one is unknown. */
export function elapsedMs(from: Timestamp | undefined, to: Timestamp | undefined): number {
  if (from === undefined || to === undefined) return 0;
  const ms = Number(to.seconds - from.seconds) * 1000 + Math.floor((to.nanos - from.nanos) / 1_000_000);
  return Math.max(0, ms);
}

const [earliestSeconds, latestSeconds] = [-62_135_596_800n, 253_402_300_799n];

/** An instant as ISO 8601 in UTC, fractions to the nanosecond where it has any; 1970 where it is unknown. */
export function toIsoText(instant: Timestamp | undefined): string {
  const isText =
    instant !== undefined && instant.seconds >= earliestSeconds && instant.seconds <= latestSeconds;
  return toJson(TimestampSchema, isText ? instant : timestampFromMs(0));
}
