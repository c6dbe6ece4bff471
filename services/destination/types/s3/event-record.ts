/**
 * An event as a line of JSON. The fields are those of media.event.v1.GenerationEvent in snake case; what an event does
 * not know, or may not disclose, is left out. Instants are ISO 8601 in UTC, integers beyond 2^53 their decimal digits, and
 * `cost_usd` is `cost_nano_usd` in USD. The line with the higher `revision` is the right one of two with one
 * `generation_id`.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Attempt, GenerationEvent } from "../../../../gen/media/event/v1/generation_event_pb.ts";
import type { Batch } from "../contract.ts";
import { apiWord, outcomeWord, toIsoText, toWireInteger } from "../event-values.ts";

/** The lines of a batch, each with its newline, in UTF-8. */
export function encodeLines({ events, disclosed }: Batch): Uint8Array {
  return Buffer.from(events.map((event) => `${JSON.stringify(toRecord(event, disclosed))}\n`).join(""));
}

function toRecord(event: GenerationEvent, disclosed: Batch["disclosed"]): JsonObject {
  return withoutEmpty({
    generation_id: event.eventId,
    revision: event.revision,
    outcome: outcomeWord(event.outcome),
    reason: event.reason,
    api: apiWord(event.api),
    model: event.model,
    model_permaslug: event.modelPermaslug,
    endpoint_id: event.endpointId,
    provider_slug: event.providerSlug,
    provider_name: event.providerName,
    byok: event.byok,
    streamed: event.streamed,
    cancelled: event.cancelled,
    started_at: instant(event.startedAt),
    first_byte_at: instant(event.firstByteAt),
    ended_at: instant(event.endedAt),
    request_id: event.requestId,
    account_id: event.accountId,
    key_hash: event.keyHash,
    tokens: integers(event.tokens),
    units: integers(event.units),
    ...(disclosed.cost ? toCost(event) : {}),
    ...(disclosed.identity
      ? { key_name: event.keyName, member_id: event.memberId, user: event.endUser }
      : {}),
    ...(disclosed.requestContext ? { session_id: event.sessionId, trace: event.trace } : {}),
    attempts: event.attempts.map(toAttempt),
  });
}

function toAttempt(attempt: Attempt): JsonObject {
  const { providerStatus, firstByteMs } = attempt;
  return withoutEmpty({
    endpoint_id: attempt.endpointId,
    provider_slug: attempt.providerSlug,
    provider_name: attempt.providerName,
    byok: attempt.byok,
    outcome: outcomeWord(attempt.outcome),
    reason: attempt.reason,
    provider_status: providerStatus === 0 ? undefined : providerStatus,
    started_at: instant(attempt.startedAt),
    first_byte_ms: firstByteMs === undefined ? undefined : toWireInteger(firstByteMs),
    duration_ms: toWireInteger(attempt.durationMs),
  });
}

function toCost({ costNanoUsd, listPriceNanoUsd }: GenerationEvent): JsonObject {
  return {
    cost_usd: Number(costNanoUsd) / 1e9,
    cost_nano_usd: toWireInteger(costNanoUsd),
    list_price_nano_usd: toWireInteger(listPriceNanoUsd),
  };
}

function instant(value: GenerationEvent["startedAt"]): string | undefined {
  return value === undefined ? undefined : toIsoText(value);
}

/** The integers of a message by their names in snake case. */
function integers(message: object | undefined): JsonObject | undefined {
  if (message === undefined) return undefined;
  const entries = Object.entries(message).flatMap(([name, value]) =>
    typeof value === "bigint" ? [[snakeCase(name), toWireInteger(value)] as const] : [],
  );
  return Object.fromEntries(entries);
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function withoutEmpty(record: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const entries = Object.entries(record).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}
