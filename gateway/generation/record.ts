import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Static } from "typebox";
import Type from "typebox";
import { Create } from "typebox/value";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  Api,
  type Attempt,
  type BilledUnits,
  type GenerationEvent,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import { usdNumber } from "../../lib/money/nano-usd.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { nullableEnum, nullableInteger, nullableString, stringEnum } from "../schema/field-schemas.ts";
import { formatInstant, formatOptionalInstant } from "../schema/utc-instant.ts";

/** How a generation or an attempt may have ended. */
export const outcomes = ["succeeded", "failed", "cancelled", "lost"] as const;

const never = Type.Null({ description: "Not known here; kept for clients that read it." });
const tokens = (description: string) => Type.Integer({ minimum: 0, description });
const reasonDescription = "Why it did not succeed: a word of the list of error reasons; null when it did.";

const attemptSchema = Type.Object({
  endpoint_id: Type.String(),
  provider_name: Type.String(),
  status: nullableInteger({ description: "The provider's HTTP status; null when it gave none." }),
  created_at: nullableString({ format: "date-time", description: "When it was sent; null when not known." }),
  latency: Type.Integer({ minimum: 0, description: "From sending to its end, ms." }),
  first_byte_latency: nullableInteger({
    minimum: 0,
    description: "From sending to the first usable output, ms; null when there was none.",
  }),
  is_byok: Type.Boolean({ description: "Whether your own provider key was used." }),
  outcome: stringEnum(outcomes),
  reason: nullableString({ description: reasonDescription }),
});

const timeFields = {
  created_at: Type.String({ format: "date-time", description: "When it began." }),
  ended_at: Type.String({ format: "date-time", description: "When it ended; lost: its deadline." }),
  latency: nullableInteger({ minimum: 0, description: "From its beginning to its end, ms; null when lost." }),
  first_byte_latency: nullableInteger({
    minimum: 0,
    description: "From its beginning to the first usable output, ms; null when there was none.",
  }),
  generation_time: nullableInteger({
    minimum: 0,
    description: "How long the last attempt took, ms; null without one.",
  }),
  moderation_latency: never,
};

const countFields = {
  tokens_prompt: tokens("Input tokens, 0 where the provider reports none."),
  tokens_completion: tokens("Output tokens, 0 where the provider reports none."),
  native_tokens_prompt: tokens("The same as tokens_prompt."),
  native_tokens_completion: tokens("The same as tokens_completion."),
  native_tokens_reasoning: tokens("Output tokens spent on reasoning."),
  native_tokens_cached: tokens("Input tokens served from the provider's cache."),
  native_tokens_completion_images: tokens("Output tokens of images."),
  num_media_prompt: tokens("Reference images sent."),
  num_media_completion: tokens("Images handed out; 1 for speech of which any was handed out."),
  num_input_audio_prompt: never,
  num_search_results: never,
  num_fetches: never,
};

const unitFields = {
  input_characters: tokens("Characters of the text sent."),
  output_audio_ms: tokens("Audio handed out, ms; 0 where the format does not tell."),
  output_images: tokens("Images handed out."),
  output_pixels: tokens("Pixels of all of them."),
  input_images: tokens("Reference images sent."),
};

const moneyFields = {
  usage: Type.Number({
    minimum: 0,
    description: "What the account was charged, USD; for your own provider keys the fee.",
  }),
  total_cost: Type.Number({ minimum: 0, description: "The same as usage." }),
  upstream_inference_cost: Type.Number({
    minimum: 0,
    description: "List price of what your own provider key served, USD; 0 without one.",
  }),
  list_price: Type.Number({
    minimum: 0,
    description: "List price of what was consumed, USD; equal to usage unless is_byok.",
  }),
  cache_discount: never,
};

const clientFields = {
  app_id: never,
  http_referer: never,
  origin: Type.String({ description: "Always empty." }),
  user_agent: never,
  preset_id: never,
  router: never,
  service_tier: never,
  upstream_id: never,
  web_search_engine: never,
  response_cache_source_id: never,
};

/** A generation as it is shown. */
export const generationSchema = Type.Object({
  id: Type.String(),
  api_type: nullableEnum(["tts", "image"]),
  model: Type.String(),
  model_permaslug: nullableString({ description: "The dated name of the exact model." }),
  endpoint_id: nullableString({ description: "The endpoint that served, or was tried last." }),
  provider_name: nullableString({ description: "That endpoint's provider." }),
  provider_responses: Type.Array(attemptSchema, { description: "Every attempt, in order." }),
  outcome: stringEnum(outcomes, { description: "`lost`: nobody knows how it ended, and it cost nothing." }),
  reason: nullableString({ description: reasonDescription }),
  finish_reason: nullableEnum(["stop", "content_filter", "error"]),
  native_finish_reason: never,
  streamed: Type.Boolean({ description: "Whether output was handed out while it was being made." }),
  cancelled: Type.Boolean({ description: "Whether the caller left before the end." }),
  ...timeFields,
  ...countFields,
  units: Type.Object(unitFields, {
    description: "What was consumed, in the units that prices are given in.",
  }),
  ...moneyFields,
  is_byok: Type.Boolean({ description: "Whether your own provider key served." }),
  external_user: nullableString({ description: "`user` of the request." }),
  session_id: nullableString({ description: "`session_id` of the request." }),
  request_id: nullableString({ description: "Its X-Request-Id." }),
  workspace_id: Type.String({ description: "The account." }),
  data_region: stringEnum(["global"]),
  ...clientFields,
});

/** The answer of GET /generation. */
export const generationAnswerSchema = Type.Object({ data: generationSchema });

/** One of them. */
export type OutcomeWord = (typeof outcomes)[number];

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

type GenerationBody = Static<typeof generationSchema>;

/** A generation's record as it is shown. Throws `internal` when the service answered without one. */
export function toGenerationAnswer(event: GenerationEvent | undefined): { data: GenerationBody } {
  if (event === undefined) throw new DomainError(ErrorReason.INTERNAL, "an answer without its event");
  return { data: toGenerationBody(event) };
}

/** The same of a record that is there. */
export function toGenerationBody(event: GenerationEvent): GenerationBody {
  const outcome = outcomeWords[event.outcome] ?? "lost";
  return {
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
    units: toUnits(event.units),
    ...toMoney(event),
    is_byok: event.byok,
    external_user: textOrNull(event.endUser),
    session_id: textOrNull(event.sessionId),
    request_id: textOrNull(event.requestId),
    workspace_id: event.accountId,
    data_region: "global",
    ...unknownClient,
  };
}

const unknownClient = Create(Type.Object(clientFields));

function toAttemptBody(attempt: Attempt): GenerationBody["provider_responses"][number] {
  return {
    endpoint_id: attempt.endpointId,
    provider_name: attempt.providerName,
    created_at: formatOptionalInstant(attempt.startedAt),
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
    ended_at: formatInstant(endedAt),
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

function toUnits(units: BilledUnits | undefined) {
  return {
    input_characters: Number(units?.inputCharacters ?? 0n),
    output_audio_ms: Number(units?.outputAudioMs ?? 0n),
    output_images: Number(units?.outputImages ?? 0n),
    output_pixels: Number(units?.outputPixels ?? 0n),
    input_images: Number(units?.inputImages ?? 0n),
  };
}

function toMoney(event: GenerationEvent) {
  const usage = usdNumber(event.costNanoUsd);
  return {
    usage,
    total_cost: usage,
    upstream_inference_cost: event.byok ? usdNumber(event.listPriceNanoUsd) : 0,
    list_price: usdNumber(event.listPriceNanoUsd),
    cache_discount: null,
  };
}

function finishReason(outcome: OutcomeWord, reason: string): GenerationBody["finish_reason"] {
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
