import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Api,
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";

/** What a test says of an event; the rest is what an event of a short speech has. */
export interface SampleEvent {
  readonly accountId: string;
  /** Unix milliseconds; now unless given. */
  readonly endedAtMs?: number;
}

/** A valid event with an id of its own. */
export function sampleEvent({ accountId, endedAtMs = Date.now() }: SampleEvent): GenerationEvent {
  return create(GenerationEventSchema, {
    eventId: `gen-tts-${randomUUID()}`,
    revision: 1,
    requestId: randomUUID(),
    accountId,
    keyHash: "0123456789abcdef".repeat(4),
    api: Api.SPEECH,
    model: "maker/model",
    endpointId: "00000000-0000-4000-8000-000000000001",
    costNanoUsd: 12_000n,
    listPriceNanoUsd: 12_000n,
    startedAt: timestampFromMs(endedAtMs - 250),
    endedAt: timestampFromMs(endedAtMs),
    outcome: Outcome.SUCCEEDED,
  });
}
