import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import {
  Api,
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import {
  type ActivityItem,
  ActivityItemSchema,
  type SeriesPoint,
  SeriesPointSchema,
} from "../../gen/media/usage/v1/usage_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { serverInterceptor } from "../../lib/rpc/interceptors.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import type { MessageChanges } from "./fake-account.ts";

/** Handlers that play the usage service. */
export type UsageHandlers = Partial<ServiceImpl<typeof UsageService>>;

/** Registers the usage service with the given handlers. */
export function usageRoutes(handlers: UsageHandlers = {}) {
  return (router: ConnectRouter) =>
    router.service(UsageService, handlers, { interceptors: [serverInterceptor(silentLog)] });
}

/** What one endpoint did on one day, as the usage service tells it. */
export function activityItem(changes: MessageChanges<ActivityItem> = {}): ActivityItem {
  const item = create(ActivityItemSchema, {
    date: "2030-01-31",
    endpointId: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10",
    model: "acme/voice",
    modelPermaslug: "acme/voice-2030-01-01",
    providerName: "Acme",
    requests: 3n,
    promptTokens: 20n,
    completionTokens: 5n,
    reasoningTokens: 2n,
    cachedTokens: 4n,
    usageNanoUsd: 1_234_567n,
    byokUsageInferenceNanoUsd: 1n,
  });
  return Object.assign(item, changes);
}

/** What happened in an hour, as the usage service tells it. */
export function seriesPoint(changes: MessageChanges<SeriesPoint> = {}): SeriesPoint {
  const point = create(SeriesPointSchema, {
    startsAt: timestampFromMs(Date.UTC(2030, 0, 31, 12)),
    group: "acme/voice",
    requests: 3n,
    errors: 1n,
    promptTokens: 20n,
    completionTokens: 5n,
    reasoningTokens: 2n,
    cachedTokens: 4n,
    usageNanoUsd: 1_234_567n,
    byokUsageInferenceNanoUsd: 1n,
    firstByteCounts: [1n, 2n],
  });
  return Object.assign(point, changes);
}

/** When the generation of `generationEvent` began, Unix milliseconds. */
export const generationStartMs = Date.UTC(2030, 0, 31, 12);

/** A generation whose second attempt succeeded, as the usage service keeps it. */
export function generationEvent(changes: MessageChanges<GenerationEvent> = {}): GenerationEvent {
  const endpoint = { providerSlug: "acme", providerName: "Acme" };
  const event = create(GenerationEventSchema, {
    ...endpoint,
    eventId: "gen-img-1",
    revision: 1,
    requestId: "req-1",
    accountId: "account-1",
    memberId: "member-1",
    keyHash: "ab".repeat(32),
    keyName: "Website",
    endUser: "user-1",
    sessionId: "session-1",
    api: Api.IMAGE,
    model: "acme/brush",
    modelPermaslug: "acme/brush-2030-01-01",
    endpointId: "endpoint-2",
    tokens: { prompt: 20n, completion: 7n, reasoning: 2n, cachedPrompt: 3n, imageCompletion: 5n },
    units: { outputImages: 2n, inputImages: 1n },
    costNanoUsd: 80_000_001n,
    listPriceNanoUsd: 80_000_001n,
    startedAt: timestampFromMs(generationStartMs),
    firstByteAt: timestampFromMs(generationStartMs + 400),
    endedAt: timestampFromMs(generationStartMs + 1500),
    streamed: true,
    outcome: Outcome.SUCCEEDED,
    attempts: [
      {
        ...endpoint,
        endpointId: "endpoint-1",
        byok: true,
        outcome: Outcome.FAILED,
        reason: "provider_overloaded",
        providerStatus: 529,
        durationMs: 100n,
      },
      {
        ...endpoint,
        endpointId: "endpoint-2",
        outcome: Outcome.SUCCEEDED,
        startedAt: timestampFromMs(generationStartMs + 110),
        firstByteMs: 290n,
        durationMs: 1380n,
      },
    ],
  });
  return Object.assign(event, changes);
}
