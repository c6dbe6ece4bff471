/**
 * What a span says of a generation. Names of the GenAI conventions of OpenTelemetry where there is one, else our own
 * under `media.`; USD is `gen_ai.usage.cost`, which receivers know though the conventions do not.
 *
 * - What an event does not know, or may not disclose, has no attribute.
 * - An integer is a number, and beyond 2^53 its decimal digits.
 * - The order is fixed, so that the same event gives the same bytes.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type {
  Attempt,
  BilledUnits,
  GenerationEvent,
  TokenCounts,
} from "../../../../gen/media/event/v1/generation_event_pb.ts";
import { Outcome } from "../../../../gen/media/event/v1/generation_event_pb.ts";
import type { Batch } from "../contract.ts";
import { apiWord, elapsedMs, outcomeWord, toWireInteger } from "../event-values.ts";

/** Attributes of a span or of an event in it. */
export type SpanAttributes = Record<string, string | number | boolean>;

/** The one operation of the conventions that stands for making speech and images. */
export const operationName = "generate_content";

/** The attributes of a generation. */
export function attributesOf(event: GenerationEvent, disclosed: Batch["disclosed"]): SpanAttributes {
  return {
    "gen_ai.operation.name": operationName,
    ...text("gen_ai.output.type", apiWord(event.api)),
    ...text("gen_ai.provider.name", event.providerSlug),
    // The name of the same before version 1.37 of the conventions.
    ...text("gen_ai.system", event.providerSlug),
    ...text("gen_ai.request.model", event.model),
    ...text("gen_ai.response.model", event.modelPermaslug),
    ...text("gen_ai.response.id", event.eventId),
    ...tokens(event.tokens),
    ...(disclosed.cost ? cost(event) : {}),
    ...text("error.type", errorType(event)),
    ...text("media.generation.id", event.eventId),
    "media.generation.revision": event.revision,
    "media.generation.outcome": outcomeWord(event.outcome),
    "media.generation.streamed": event.streamed,
    "media.generation.cancelled": event.cancelled,
    "media.generation.attempts": event.attempts.length,
    ...firstByte(event),
    ...text("media.request.id", event.requestId),
    ...text("media.account.id", event.accountId),
    ...text("media.key.hash", event.keyHash),
    ...text("media.endpoint.id", event.endpointId),
    ...text("media.provider.name", event.providerName),
    "media.byok": event.byok,
    ...units(event.units),
    ...(disclosed.identity ? identity(event) : {}),
    ...(disclosed.requestContext ? requestContext(event) : {}),
  };
}

/** The attributes of one attempt; `number` counts from 1. */
export function attributesOfAttempt(attempt: Attempt, number: number): SpanAttributes {
  const { outcome, reason, providerStatus, firstByteMs } = attempt;
  return {
    "media.attempt.number": number,
    "media.attempt.outcome": outcomeWord(outcome),
    "media.attempt.duration_ms": toWireInteger(attempt.durationMs),
    ...(firstByteMs === undefined ? {} : { "media.attempt.first_byte_ms": toWireInteger(firstByteMs) }),
    ...text("error.type", reason),
    ...(providerStatus === 0 ? {} : { "http.response.status_code": providerStatus }),
    ...text("gen_ai.provider.name", attempt.providerSlug),
    ...text("media.endpoint.id", attempt.endpointId),
    ...text("media.provider.name", attempt.providerName),
    "media.byok": attempt.byok,
  };
}

/** Why a generation failed, or that its outcome is unknown; empty when neither. */
export function errorType({ outcome, reason }: GenerationEvent): string {
  if (reason !== "") return reason;
  return outcome === Outcome.FAILED || outcome === Outcome.LOST ? outcomeWord(outcome) : "";
}

function text(name: string, value: string): SpanAttributes {
  return value === "" ? {} : { [name]: value };
}

function tokens(counts: TokenCounts | undefined): SpanAttributes {
  if (counts === undefined) return {};
  return {
    "gen_ai.usage.input_tokens": toWireInteger(counts.prompt),
    "gen_ai.usage.output_tokens": toWireInteger(counts.completion),
    ...some("gen_ai.usage.cache_read.input_tokens", counts.cachedPrompt),
    ...some("gen_ai.usage.reasoning.output_tokens", counts.reasoning),
    ...some("media.usage.image_input_tokens", counts.imagePrompt),
    ...some("media.usage.image_output_tokens", counts.imageCompletion),
    ...some("media.usage.audio_output_tokens", counts.audioCompletion),
  };
}

function units(billed: BilledUnits | undefined): SpanAttributes {
  if (billed === undefined) return {};
  return {
    ...some("media.units.input_characters", billed.inputCharacters),
    ...some("media.units.output_images", billed.outputImages),
    ...some("media.units.output_pixels", billed.outputPixels),
    ...some("media.units.input_images", billed.inputImages),
    ...some("media.units.output_audio_ms", billed.outputAudioMs),
  };
}

function some(name: string, value: bigint): SpanAttributes {
  return value === 0n ? {} : { [name]: toWireInteger(value) };
}

function cost({ costNanoUsd, listPriceNanoUsd }: GenerationEvent): SpanAttributes {
  return {
    "gen_ai.usage.cost": Number(costNanoUsd) / 1e9,
    "media.cost_nano_usd": toWireInteger(costNanoUsd),
    "media.list_price_nano_usd": toWireInteger(listPriceNanoUsd),
  };
}

function firstByte({ startedAt, firstByteAt }: GenerationEvent): SpanAttributes {
  return firstByteAt === undefined ? {} : { "media.first_byte_ms": elapsedMs(startedAt, firstByteAt) };
}

function identity({ keyName, memberId, endUser }: GenerationEvent): SpanAttributes {
  return {
    ...text("media.key.name", keyName),
    ...text("media.member.id", memberId),
    ...text("user.id", endUser),
  };
}

function requestContext({ sessionId, trace = {} }: GenerationEvent): SpanAttributes {
  const names = Object.keys(trace).sort();
  return {
    ...text("session.id", sessionId),
    ...text("gen_ai.conversation.id", sessionId),
    ...Object.fromEntries(
      names.map((name) => [`media.trace.${name}`, traceValue(trace[name] ?? null)] as const),
    ),
  };
}

/** Lists, objects and null travel as JSON, names in order; integers that are none of 64 bits as text. */
function traceValue(value: JsonValue): string | number | boolean {
  if (typeof value === "object") return JSON.stringify(sorted(value));
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(value) : value;
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as JsonObject).map(([name, inner]) => [name, sorted(inner)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}
