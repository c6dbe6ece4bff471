import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  Api,
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import { hashApiKey } from "../../../lib/identity/api-key.ts";

/** What a test says of an event; the rest is made up, and the same each time. */
export interface UsageEventInit
  extends Omit<MessageInitShape<typeof GenerationEventSchema>, "startedAt" | "endedAt" | "$typeName"> {
  /** Unix milliseconds or an ISO text; noon of 2030-01-01 unless given. */
  readonly ended?: number | string;
}

/** Ids of the events, accounts and endpoints of tests: the same UUID for the same number. */
export function testUuid(number: number): string {
  return `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`;
}

/** An event of revision 1 that succeeded and cost 5 nano-USD. */
export function usageEvent(init: UsageEventInit = {}): GenerationEvent {
  const { ended = "2030-01-01T12:00:00Z", ...rest } = init;
  const endedMs = typeof ended === "number" ? ended : Date.parse(ended);
  return create(GenerationEventSchema, {
    eventId: "gen-tts-1",
    revision: 1,
    requestId: "req-1",
    accountId: testUuid(1),
    keyHash: hashApiKey("a key"),
    keyName: "a key",
    api: Api.SPEECH,
    model: "acme/voice",
    modelPermaslug: "acme/voice-2029",
    endpointId: testUuid(100),
    providerSlug: "acme",
    providerName: "Acme",
    tokens: { prompt: 3n, completion: 2n, reasoning: 1n, cachedPrompt: 2n },
    costNanoUsd: 5n,
    listPriceNanoUsd: 5n,
    startedAt: timestampFromMs(endedMs - 1000),
    endedAt: timestampFromMs(endedMs),
    outcome: Outcome.SUCCEEDED,
    ...rest,
  });
}

/** What account publishes of a generation that is lost: revision 0, nothing consumed, nothing charged. */
export function lostEvent(init: UsageEventInit = {}): GenerationEvent {
  const nothing = { revision: 0, outcome: Outcome.LOST, costNanoUsd: 0n, listPriceNanoUsd: 0n, tokens: {} };
  return usageEvent({ ...nothing, ...init });
}
