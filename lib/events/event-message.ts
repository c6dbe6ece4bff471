import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import type { BusMessage, OutgoingMessage } from "./bus.ts";

/** Largest event on the bus, bytes. */
export const maxEventBytes = 64 * 1024;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const keyHash = /^[0-9a-f]{64}$/;
const generationId = /^gen-(tts|img)-[\w-]{1,56}$/;

/** The bytes of an event, made or known. */
export type BytesOfEvent = (event: GenerationEvent) => Uint8Array;

/** Makes the bytes of an event. The same event gives the same bytes. */
export const bytesOfEvent: BytesOfEvent = (event) => toBinary(GenerationEventSchema, event);

/** An event as it goes onto the bus. */
export function toEventMessage(event: GenerationEvent): OutgoingMessage {
  return { key: event.accountId, value: bytesOfEvent(event) };
}

/** The event in a message; undefined when it can't be decoded or breaks what every event keeps. */
export function fromEventMessage({ value }: Pick<BusMessage, "value">): GenerationEvent | undefined {
  try {
    const event = fromBinary(GenerationEventSchema, value);
    return value.length <= maxEventBytes && eventFault(event) === undefined ? event : undefined;
  } catch {
    return undefined;
  }
}

/** What is wrong with an event that no consumer could apply, in words; undefined when nothing is. Size aside. */
export function eventFault(event: GenerationEvent): string | undefined {
  if (!generationId.test(event.eventId)) return "event_id is no generation id";
  if (!uuid.test(event.accountId)) return "account_id is no UUID";
  if (!keyHash.test(event.keyHash)) return "key_hash is no SHA-256";
  if (event.memberId !== "" && !uuid.test(event.memberId)) return "member_id is no UUID";
  if (!uuid.test(event.endpointId)) return "endpoint_id is no UUID";
  if (event.revision !== (event.outcome === Outcome.LOST ? 0 : 1)) return "revision does not fit the outcome";
  if (event.outcome === Outcome.UNSPECIFIED) return "outcome is missing";
  if (event.endedAt === undefined || event.startedAt === undefined)
    return "started_at or ended_at is missing";
  if (event.costNanoUsd < 0n || event.listPriceNanoUsd < 0n) return "a price is negative";
  return undefined;
}

/** When an event ended, Unix milliseconds. */
export function endedAtMs({ endedAt }: GenerationEvent): number {
  return endedAt === undefined ? 0 : Number(endedAt.seconds) * 1000 + Math.floor(endedAt.nanos / 1e6);
}
