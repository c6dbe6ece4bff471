import Type from "typebox";
import { nullableEnum, nullableInteger, nullableString } from "../schema/nullable-schema.ts";
import { stringEnum } from "../schema/string-enum.ts";

/** How a generation or an attempt may have ended. */
export const outcomes = ["succeeded", "failed", "cancelled", "lost"] as const;

const never = Type.Null({ description: "Not known here; kept for clients that read it." });
const tokens = (description: string) => Type.Integer({ minimum: 0, description });
const reasonDescription = "Why it did not succeed: a word of the list of error reasons; null when it did.";

const attemptSchema = Type.Object({
  endpoint_id: Type.String(),
  provider_name: Type.String(),
  status: nullableInteger({ description: "The provider's HTTP status; null when it gave none." }),
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

/** The answer of GET /generation. */
export const generationAnswerSchema = Type.Object({
  data: Type.Object({
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
    ...moneyFields,
    is_byok: Type.Boolean({ description: "Whether your own provider key served." }),
    external_user: nullableString({ description: "`user` of the request." }),
    session_id: nullableString({ description: "`session_id` of the request." }),
    request_id: nullableString({ description: "Its X-Request-Id." }),
    workspace_id: Type.String({ description: "The account." }),
    data_region: stringEnum(["global"]),
    ...clientFields,
  }),
});
