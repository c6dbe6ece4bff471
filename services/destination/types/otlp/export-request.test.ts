import { create, type JsonValue } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Attempt,
  AttemptSchema,
  type GenerationEvent,
  Outcome,
} from "../../../../gen/media/event/v1/generation_event_pb.ts";
import { anyGenerationEvent } from "../../../../test/fakes/any-generation-event.ts";
import { lostEvent, usageEvent } from "../../../../test/support/services/usage-events.ts";
import {
  decodeExport,
  decodeJsonExport,
  type OtlpAttributes,
  type OtlpSpan,
} from "../../../../test/upstreams/receivers/otlp-decode.ts";
import type { Batch } from "../contract.ts";
import { encodeExport } from "./export-request.ts";

const all = { cost: true, identity: true, requestContext: true };

function batchOf(events: readonly GenerationEvent[], disclosed: Batch["disclosed"] = all): Batch {
  return { id: "a batch", events, disclosed };
}

/** Both encodings, which must say the same. */
function decodeBoth(batch: Batch): OtlpSpan[] {
  const spans = decodeExport(encodeExport("protobuf", batch));
  expect(decodeJsonExport(Buffer.from(encodeExport("json", batch)).toString())).toEqual(spans);
  return spans;
}

function spanOf(event: GenerationEvent, disclosed?: Batch["disclosed"]): OtlpSpan {
  const [span] = decodeBoth(batchOf([event], disclosed));
  if (span === undefined) throw new Error("no span");
  return span;
}

const words = new Map<string, Outcome>([
  ["succeeded", Outcome.SUCCEEDED],
  ["failed", Outcome.FAILED],
  ["cancelled", Outcome.CANCELLED],
  ["lost", Outcome.LOST],
]);

const text = (attributes: OtlpAttributes, name: string) => String(attributes[name] ?? "");
const integer = (attributes: OtlpAttributes, name: string) => BigInt(text(attributes, name) || 0);

/** What a receiver can know of an event, read out of a span alone. */
function factsOfSpan({ attributes, events }: OtlpSpan) {
  const read = (name: string) => text(attributes, name);
  const count = (name: string) => integer(attributes, name);
  return {
    ids: [read("media.generation.id"), read("gen_ai.response.id"), count("media.generation.revision")],
    who: [read("media.account.id"), read("media.key.hash"), read("media.request.id")],
    identity: [read("media.key.name"), read("media.member.id"), read("user.id")],
    session: [read("session.id"), read("gen_ai.conversation.id")],
    what: [read("gen_ai.output.type"), read("gen_ai.request.model"), read("gen_ai.response.model")],
    where: [read("gen_ai.provider.name"), read("media.provider.name"), read("media.endpoint.id")],
    how: [attributes["media.byok"], words.get(read("media.generation.outcome"))],
    flags: [attributes["media.generation.streamed"], attributes["media.generation.cancelled"]],
    money: [count("media.cost_nano_usd"), count("media.list_price_nano_usd")],
    tokens: ["input_tokens", "output_tokens", "reasoning.output_tokens", "cache_read.input_tokens"].map(
      (name) => count(`gen_ai.usage.${name}`),
    ),
    mediaTokens: ["image_input", "image_output", "audio_output"].map((name) =>
      count(`media.usage.${name}_tokens`),
    ),
    units: ["input_characters", "output_images", "output_pixels", "input_images", "output_audio_ms"].map(
      (name) => count(`media.units.${name}`),
    ),
    attempts: events.map((event) => ({
      number: integer(event.attributes, "media.attempt.number"),
      outcome: words.get(text(event.attributes, "media.attempt.outcome")),
      reason: text(event.attributes, "error.type"),
      status: integer(event.attributes, "http.response.status_code"),
      endpoint: text(event.attributes, "media.endpoint.id"),
      provider: text(event.attributes, "gen_ai.provider.name"),
      name: text(event.attributes, "media.provider.name"),
      byok: event.attributes["media.byok"],
      durationMs: integer(event.attributes, "media.attempt.duration_ms"),
      firstByteMs:
        event.attributes["media.attempt.first_byte_ms"] === undefined
          ? undefined
          : integer(event.attributes, "media.attempt.first_byte_ms"),
    })),
  };
}

/** The same, taken from the event. */
function factsOfEvent(event: GenerationEvent): ReturnType<typeof factsOfSpan> {
  const { tokens, units } = event;
  return {
    ids: [event.eventId, event.eventId, BigInt(event.revision)],
    who: [event.accountId, event.keyHash, event.requestId],
    identity: [event.keyName, event.memberId, event.endUser],
    session: [event.sessionId, event.sessionId],
    what: [event.api === 1 ? "speech" : "image", event.model, event.modelPermaslug],
    where: [event.providerSlug, event.providerName, event.endpointId],
    how: [event.byok, event.outcome],
    flags: [event.streamed, event.cancelled],
    money: [event.costNanoUsd, event.listPriceNanoUsd],
    tokens: [tokens?.prompt, tokens?.completion, tokens?.reasoning, tokens?.cachedPrompt].map(
      (value) => value ?? 0n,
    ),
    mediaTokens: [tokens?.imagePrompt, tokens?.imageCompletion, tokens?.audioCompletion].map(
      (value) => value ?? 0n,
    ),
    units: [
      units?.inputCharacters,
      units?.outputImages,
      units?.outputPixels,
      units?.inputImages,
      units?.outputAudioMs,
    ].map((value) => value ?? 0n),
    attempts: event.attempts.map((attempt: Attempt, index) => ({
      number: BigInt(index + 1),
      outcome: attempt.outcome,
      reason: attempt.reason,
      status: BigInt(attempt.providerStatus),
      endpoint: attempt.endpointId,
      provider: attempt.providerSlug,
      name: attempt.providerName,
      byok: attempt.byok,
      durationMs: attempt.durationMs,
      firstByteMs: attempt.firstByteMs,
    })),
  };
}

const nanoseconds = ({ seconds, nanos }: Timestamp) => seconds * 1_000_000_000n + BigInt(nanos);

/** Whether its nanoseconds fit in 63 bits, with some room. */
function isTellable(instant: Timestamp | undefined): instant is Timestamp {
  return instant !== undefined && instant.seconds < 9_223_372_035n;
}

describe("any event", () => {
  test("is decoded to the facts that it was encoded from", () => {
    fc.assert(
      fc.property(fc.array(anyGenerationEvent, { minLength: 1, maxLength: 3 }), (events) => {
        const spans = decodeBoth(batchOf(events));
        expect(spans.map(factsOfSpan)).toEqual(events.map(factsOfEvent));
      }),
    );
  });

  test("lies between its times, where those can be given in nanoseconds", () => {
    fc.assert(
      fc.property(anyGenerationEvent, (event) => {
        const { startNs, endNs, attributes } = spanOf(event);
        const { startedAt, endedAt, firstByteAt } = event;
        expect(endNs).toBeGreaterThanOrEqual(startNs);
        const began = startedAt ?? endedAt;
        if (isTellable(began)) expect(startNs).toBe(nanoseconds(began));
        if (isTellable(endedAt)) expect([startNs, nanoseconds(endedAt)]).toContain(endNs);
        if (isTellable(endedAt)) expect(endNs).toBeGreaterThanOrEqual(nanoseconds(endedAt));
        expect(attributes["media.first_byte_ms"] === undefined).toBe(firstByteAt === undefined);
      }),
    );
  });

  test("carries the caller's trace, whatever is in it", () => {
    fc.assert(
      fc.property(anyGenerationEvent, (event) => {
        const { attributes } = spanOf(event);
        const disclosed = Object.entries(attributes).filter(([name]) => name.startsWith("media.trace."));
        const given = Object.entries(event.trace ?? {});
        expect(disclosed.map(([name]) => name.slice("media.trace.".length)).sort()).toEqual(
          given.map(([name]) => name).sort(),
        );
        for (const [name, value] of given) {
          expect(asAttribute(value)).toEqual(backToJson(attributes[`media.trace.${name}`], value));
        }
      }),
    );
  });

  test("that is not disclosed has nothing of what may not", () => {
    fc.assert(
      fc.property(anyGenerationEvent, (event) => {
        const names = Object.keys(
          spanOf(event, { cost: false, identity: false, requestContext: false }).attributes,
        );
        expect(
          names.filter((name) => /cost|price|key\.name|member|user|session|conv|trace/.test(name)),
        ).toEqual([]);
      }),
    );
  });
});

/** Numbers that OTLP has no integer for travel as text. */
function asAttribute(value: JsonValue): JsonValue {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
    ? String(value)
    : value;
}

function backToJson(attribute: OtlpAttributes[string], like: JsonValue): unknown {
  if (typeof attribute === "bigint") return Number(attribute);
  return typeof like === "object" && typeof attribute === "string" ? JSON.parse(attribute) : attribute;
}

describe("a span", () => {
  test("has the names that receivers of generations know", () => {
    const span = spanOf(usageEvent({ costNanoUsd: 1_500_000_000n, sessionId: "s", endUser: "u" }));
    expect(span).toMatchObject({
      resource: { "service.name": "media-gateway" },
      scope: "media-gateway",
      name: "generate_content acme/voice",
      kind: 3,
      statusCode: 0,
      startNs: 1_893_499_199_000_000_000n,
      endNs: 1_893_499_200_000_000_000n,
    });
    expect(span.attributes).toMatchObject({
      "gen_ai.operation.name": "generate_content",
      "gen_ai.output.type": "speech",
      "gen_ai.provider.name": "acme",
      "gen_ai.system": "acme",
      "gen_ai.request.model": "acme/voice",
      "gen_ai.response.model": "acme/voice-2029",
      "gen_ai.usage.input_tokens": 3n,
      "gen_ai.usage.output_tokens": 2n,
      "gen_ai.usage.cost": 1.5,
      "session.id": "s",
      "user.id": "u",
    });
  });

  test("of what failed or is lost has the status of an error, with the reason; of a cancelled one not", () => {
    const failed = spanOf(usageEvent({ outcome: Outcome.FAILED, reason: "upstream_failed" }));
    expect(failed).toMatchObject({ statusCode: 2, statusMessage: "upstream_failed" });
    expect(failed.attributes["error.type"]).toBe("upstream_failed");
    const lost = spanOf(lostEvent());
    expect(lost).toMatchObject({ statusCode: 2, statusMessage: "lost" });
    expect(lost.attributes).toMatchObject({ "error.type": "lost", "media.generation.revision": 0n });
    const cancelled = spanOf(usageEvent({ outcome: Outcome.CANCELLED, cancelled: true }));
    expect(cancelled.statusCode).toBe(0);
    expect(cancelled.attributes).not.toHaveProperty("error.type");
  });

  test("names every attempt, so that a fallback can be seen", () => {
    const { startedAt } = usageEvent();
    const attempts = [
      { outcome: Outcome.FAILED, reason: "upstream_overloaded", providerStatus: 529, durationMs: 40n },
      { outcome: Outcome.SUCCEEDED, firstByteMs: 7n, durationMs: 90n, byok: true },
    ].map((init) => create(AttemptSchema, { ...init, ...(startedAt === undefined ? {} : { startedAt }) }));
    const { attributes, events } = spanOf(usageEvent({ attempts }));
    expect(attributes["media.generation.attempts"]).toBe(2n);
    expect(events.map(({ name }) => name)).toEqual(["media.attempt", "media.attempt"]);
    expect(events[0]).toMatchObject({
      timeNs: 1_893_499_199_000_000_000n,
      attributes: { "http.response.status_code": 529n, "error.type": "upstream_overloaded" },
    });
    expect(events[1]?.attributes).toMatchObject({ "media.byok": true, "media.attempt.first_byte_ms": 7n });
  });

  test("has ids of its event and revision, and of the caller's trace", () => {
    const event = usageEvent();
    const { traceId, spanId } = spanOf(event);
    expect(spanOf(event)).toMatchObject({ traceId, spanId, parentSpanId: "" });
    const other = spanOf(lostEvent());
    expect(other.traceId).toBe(traceId);
    expect(other.spanId).not.toBe(spanId);
    expect(spanOf(usageEvent({ eventId: "gen-tts-2" })).traceId).not.toBe(traceId);

    const traceOf = (trace: Record<string, string>, more = {}) => spanOf(usageEvent({ trace, ...more }));
    expect(traceOf({ trace_id: "4BF92F3577B34DA6A3CE929D0E0E4736" }).traceId).toBe(
      "4bf92f3577b34da6a3ce929d0e0e4736",
    );
    expect(traceOf({ trace_id: "4bf92f35-77b3-4da6-a3ce-929d0e0e4736" }).traceId).toBe(
      "4bf92f3577b34da6a3ce929d0e0e4736",
    );
    expect(traceOf({ trace_id: "0".repeat(32) }).traceId).not.toBe("0".repeat(32));
    const named = traceOf({ trace_id: "checkout-7" });
    expect(traceOf({ trace_id: "checkout-7" }, { eventId: "gen-tts-3" }).traceId).toBe(named.traceId);
    expect(traceOf({ trace_id: "checkout-7" }, { accountId: "other" }).traceId).not.toBe(named.traceId);
    expect(traceOf({ parent_span_id: "00F067AA0BA902B7" }).parentSpanId).toBe("00f067aa0ba902b7");
    expect(traceOf({ parent_span_id: "checkout" }).parentSpanId).toBe("");
    expect(traceOf({ generation_name: "narrate" }).name).toBe("narrate");
  });

  test("keeps the caller's ids and name to itself where they are not disclosed", () => {
    const trace = {
      trace_id: "4bf92f3577b34da6a3ce929d0e0e4736",
      parent_span_id: "00f067aa0ba902b7",
      generation_name: "secret",
    };
    const span = spanOf(usageEvent({ trace }), { ...all, requestContext: false });
    expect(span.parentSpanId).toBe("");
    expect(span.traceId).toBe(spanOf(usageEvent()).traceId);
    expect(span.name).toBe("generate_content acme/voice");
  });

  test("is the same bytes in whatever order the caller's trace comes", () => {
    const encode = (trace: Record<string, JsonValue>) =>
      Buffer.from(encodeExport("json", batchOf([usageEvent({ trace } as never)]))).toString();
    expect(encode({ b: { d: 1, c: [{ y: 1, x: 2 }] }, a: null })).toBe(
      encode({ a: null, b: { c: [{ x: 2, y: 1 }], d: 1 } }),
    );
  });

  test("is missing where there is no batch", () => {
    expect(decodeExport(encodeExport("protobuf", undefined))).toEqual([]);
    expect(Buffer.from(encodeExport("json", undefined)).toString()).toBe('{"resourceSpans":[]}');
  });
});
