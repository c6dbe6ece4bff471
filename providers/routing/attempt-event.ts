import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Attempt,
  AttemptSchema,
  type TokenCounts,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import type { TokenUsage } from "../contract.ts";
import type { AttemptRecord } from "./attempt.ts";

/** An attempt as usage events record it. */
export function toProtoAttempt(record: AttemptRecord): Attempt {
  const { endpoint, outcome, reason, providerStatus, startedAtMs, firstOutputMs, durationMs } = record;
  return create(AttemptSchema, {
    endpointId: endpoint.id,
    providerSlug: endpoint.providerSlug,
    providerName: endpoint.providerName,
    byok: endpoint.ownKey !== undefined,
    outcome,
    reason: reason === undefined ? "" : wordOfReason(reason),
    providerStatus,
    startedAt: timestampFromMs(Math.round(startedAtMs)),
    ...(firstOutputMs === undefined ? {} : { firstByteMs: wholeMs(firstOutputMs) }),
    durationMs: wholeMs(durationMs),
  });
}

function wholeMs(durationMs: number): bigint {
  return BigInt(Math.max(0, Math.round(durationMs)));
}

/** Tokens as usage events count them; all 0 where the upstream reported none. */
export function toProtoTokens(usage: TokenUsage | undefined): Omit<TokenCounts, "$typeName" | "$unknown"> {
  return {
    prompt: BigInt(usage?.prompt ?? 0),
    completion: BigInt(usage?.completion ?? 0),
    reasoning: BigInt(usage?.reasoning ?? 0),
    cachedPrompt: BigInt(usage?.cachedPrompt ?? 0),
    imagePrompt: BigInt(usage?.imagePrompt ?? 0),
    imageCompletion: BigInt(usage?.imageCompletion ?? 0),
    audioCompletion: BigInt(usage?.audioCompletion ?? 0),
  };
}
