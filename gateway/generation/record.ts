import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Static } from "typebox";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  Api,
  type Attempt,
  type GenerationEvent,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { formatInstant } from "../schema/utc-instant.ts";
import type { generationAnswerSchema, outcomes } from "./answer-schema.ts";

type OutcomeWord = (typeof outcomes)[number];

/** By value; one that a newer service knows and this gateway does not is as good as lost. */
const outcomeWords: Readonly<Record<Outcome, OutcomeWord>> = {
  [Outcome.UNSPECIFIED]: "lost",
  [Outcome.SUCCEEDED]: "succeeded",
  [Outcome.FAILED]: "failed",
  [Outcome.CANCELLED]: "cancelled",
  [Outcome.LOST]: "lost",
};

const apiWords: Readonly<Record<Api, "tts" | "image" | null>> = {
  [Api.UNSPECIFIED]: null,
  [Api.SPEECH]: "tts",
  [Api.IMAGE]: "image",
};

/** The reason of a refusal by the provider's policy. */
const contentPolicy = wordOfReason(ErrorReason.CONTENT_POLICY);

type GenerationAnswer = Static<typeof generationAnswerSchema>;

/** A generation's record as it is shown. Throws `internal` when the service answered without one. */
export function toGenerationAnswer(event: GenerationEvent | undefined): GenerationAnswer {
  if (event === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without its event");
  const outcome = outcomeWords[event.outcome] ?? "lost";
  return {
    data: {
      id: event.eventId,
      api_type: apiWords[event.api] ?? null,
      model: event.model,
      model_permaslug: textOrNull(event.modelPermaslug),
      endpoint_id: textOrNull(event.endpointId),
      provider_name: textOrNull(event.providerName),
      provider_responses: event.attempts.map(toAttemptBody),
      outcome,
      reason: textOrNull(event.reason),
      finish_reason: finishReason(outcome, event.reason),
      native_finish_reason: null,
      streamed: event.streamed,
      cancelled: event.cancelled,
      ...toTimes(event, outcome),
      ...toCounts(event),
      ...toMoney(event),
      is_byok: event.byok,
      external_user: textOrNull(event.endUser),
      session_id: textOrNull(event.sessionId),
      request_id: textOrNull(event.requestId),
      workspace_id: event.accountId,
      data_region: "global",
      ...unknownClient,
    },
  };
}

const unknownClient = {
  app_id: null,
  http_referer: null,
  origin: "",
  user_agent: null,
  preset_id: null,
  router: null,
  service_tier: null,
  upstream_id: null,
  web_search_engine: null,
  response_cache_source_id: null,
} as const;

function toAttemptBody(attempt: Attempt): GenerationAnswer["data"]["provider_responses"][number] {
  return {
    endpoint_id: attempt.endpointId,
    provider_name: attempt.providerName,
    status: attempt.providerStatus === 0 ? null : attempt.providerStatus,
    latency: Number(attempt.durationMs),
    first_byte_latency: attempt.firstByteMs === undefined ? null : Number(attempt.firstByteMs),
    is_byok: attempt.byok,
    outcome: outcomeWords[attempt.outcome] ?? "lost",
    reason: textOrNull(attempt.reason),
  };
}

function toTimes({ startedAt, firstByteAt, endedAt, attempts }: GenerationEvent, outcome: OutcomeWord) {
  const last = attempts.at(-1);
  return {
    created_at: formatInstant(startedAt),
    // The end of a lost one is its deadline, which says nothing about how long it took.
    latency: outcome === "lost" ? null : msBetween(startedAt, endedAt),
    first_byte_latency: msBetween(startedAt, firstByteAt),
    generation_time: last === undefined ? null : Number(last.durationMs),
    moderation_latency: null,
  };
}

function toCounts({ api, tokens: counted, units, firstByteAt }: GenerationEvent) {
  const prompt = Number(counted?.prompt ?? 0n);
  const completion = Number(counted?.completion ?? 0n);
  const spoken = firstByteAt === undefined ? 0 : 1;
  return {
    tokens_prompt: prompt,
    tokens_completion: completion,
    native_tokens_prompt: prompt,
    native_tokens_completion: completion,
    native_tokens_reasoning: Number(counted?.reasoning ?? 0n),
    native_tokens_cached: Number(counted?.cachedPrompt ?? 0n),
    native_tokens_completion_images: Number(counted?.imageCompletion ?? 0n),
    num_media_prompt: Number(units?.inputImages ?? 0n),
    num_media_completion: api === Api.SPEECH ? spoken : Number(units?.outputImages ?? 0n),
    num_input_audio_prompt: null,
    num_search_results: null,
    num_fetches: null,
  };
}

function toMoney(event: GenerationEvent) {
  const usage = usdNumber(event.costNanoUsd);
  return {
    usage,
    total_cost: usage,
    upstream_inference_cost: event.byok ? usdNumber(event.listPriceNanoUsd) : 0,
    cache_discount: null,
  };
}

function finishReason(outcome: OutcomeWord, reason: string): GenerationAnswer["data"]["finish_reason"] {
  if (outcome === "succeeded") return "stop";
  if (outcome === "cancelled") return null;
  return reason === contentPolicy ? "content_filter" : "error";
}

function msBetween(from: Timestamp | undefined, to: Timestamp | undefined): number | null {
  if (from === undefined || to === undefined) return null;
  return Math.max(0, timestampMs(to) - timestampMs(from));
}

function textOrNull(text: string): string | null {
  return text === "" ? null : text;
}
