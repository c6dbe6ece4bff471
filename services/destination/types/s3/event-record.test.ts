import { create } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  AttemptSchema,
  type GenerationEvent,
  Outcome,
} from "../../../../gen/media/event/v1/generation_event_pb.ts";
import { anyGenerationEvent } from "../../../../test/fakes/any-generation-event.ts";
import { lostEvent, usageEvent } from "../../../../test/support/services/usage-events.ts";
import type { Batch } from "../contract.ts";
import { encodeLines } from "./event-record.ts";

type Line = Record<string, unknown> & {
  readonly tokens?: Record<string, number | string>;
  readonly units?: Record<string, number | string>;
  readonly attempts: Record<string, unknown>[];
};

const all = { cost: true, identity: true, requestContext: true };

function linesOf(events: readonly GenerationEvent[], disclosed: Batch["disclosed"] = all): Line[] {
  const text = Buffer.from(encodeLines({ id: "a batch", events, disclosed })).toString();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .slice(0, -1)
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

const words = ["unspecified", "succeeded", "failed", "cancelled", "lost"];
const count = (value: unknown) => BigInt((value as number | string | undefined) ?? 0);
const read = (value: unknown) => value ?? "";

test("any event is read back as the facts that it was written from", () => {
  fc.assert(
    fc.property(fc.array(anyGenerationEvent, { minLength: 1, maxLength: 3 }), (events) => {
      const lines = linesOf(events);
      expect(lines).toHaveLength(events.length);
      for (const [index, event] of events.entries()) expectSame(lines[index], event);
    }),
  );
});

function expectSame(line: Line | undefined, event: GenerationEvent): void {
  expect([line?.generation_id, line?.revision]).toEqual([event.eventId, event.revision]);
  expect([line?.outcome, line?.api]).toEqual([words[event.outcome], event.api === 1 ? "speech" : "image"]);
  const texts = ["reason", "model", "model_permaslug", "endpoint_id", "provider_slug", "provider_name"];
  const more = ["request_id", "account_id", "key_hash", "key_name", "member_id", "user", "session_id"];
  expect([...texts, ...more].map((name) => read(line?.[name]))).toEqual([
    ...[event.reason, event.model, event.modelPermaslug, event.endpointId],
    ...[event.providerSlug, event.providerName, event.requestId, event.accountId, event.keyHash],
    ...[event.keyName, event.memberId, event.endUser, event.sessionId],
  ]);
  expect([line?.byok, line?.streamed, line?.cancelled]).toEqual([
    event.byok,
    event.streamed,
    event.cancelled,
  ]);
  expect([count(line?.cost_nano_usd), count(line?.list_price_nano_usd)]).toEqual([
    event.costNanoUsd,
    event.listPriceNanoUsd,
  ]);
  expect(line?.trace).toEqual(event.trace);
  expect(count(line?.tokens?.cached_prompt)).toBe(event.tokens?.cachedPrompt ?? 0n);
  expect(count(line?.tokens?.completion)).toBe(event.tokens?.completion ?? 0n);
  expect(count(line?.units?.output_audio_ms)).toBe(event.units?.outputAudioMs ?? 0n);
  expect(line?.attempts.map((attempt) => [attempt.outcome, count(attempt.duration_ms)])).toEqual(
    event.attempts.map((attempt) => [words[attempt.outcome], attempt.durationMs]),
  );
  expect(line?.attempts.map(({ first_byte_ms: ms }) => (ms === undefined ? ms : count(ms)))).toEqual(
    event.attempts.map(({ firstByteMs }) => firstByteMs),
  );
}

test("what is not disclosed is left out, and nothing is empty", () => {
  fc.assert(
    fc.property(anyGenerationEvent, (event) => {
      const [line] = linesOf([event], { cost: false, identity: false, requestContext: false });
      const names = Object.keys(line ?? {});
      expect(names.filter((name) => /cost|price|key_name|member|user|session|trace/.test(name))).toEqual([]);
      expect(Object.values(line ?? {})).not.toContain("");
    }),
  );
});

test("a line has these fields", () => {
  const startedAt = create(TimestampSchema, { seconds: 1_893_499_199n, nanos: 1_000 });
  const attempt = { outcome: Outcome.FAILED, reason: "upstream_failed", providerStatus: 502, startedAt };
  const attempts = [create(AttemptSchema, { ...attempt, durationMs: 2n ** 60n })];
  const [line] = linesOf([usageEvent({ attempts, costNanoUsd: 1_500_000_000n })]);
  expect(line).toMatchObject({
    generation_id: "gen-tts-1",
    started_at: "2030-01-01T11:59:59Z",
    ended_at: "2030-01-01T12:00:00Z",
    tokens: { prompt: 3, completion: 2, reasoning: 1, cached_prompt: 2 },
    cost_usd: 1.5,
    cost_nano_usd: 1_500_000_000,
    key_name: "a key",
    attempts: [
      {
        byok: false,
        outcome: "failed",
        reason: "upstream_failed",
        provider_status: 502,
        started_at: "2030-01-01T11:59:59.000001Z",
        duration_ms: "1152921504606846976",
      },
    ],
  });
});

test("a lost one costs nothing and says so", () => {
  expect(linesOf([lostEvent()])).toMatchObject([{ revision: 0, outcome: "lost", cost_nano_usd: 0 }]);
});
