import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import {
  Api,
  type GenerationEvent,
  GenerationEventSchema,
  Outcome,
} from "../../gen/media/event/v1/generation_event_pb.ts";

const text = (maxLength = 32) =>
  fc.oneof(fc.constant(""), fc.string({ maxLength }), fc.string({ unit: "binary", maxLength }));

const count = fc.oneof(
  fc.constantFrom(0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n),
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
);

const flag = fc.boolean();
const outcome = fc.constantFrom(Outcome.SUCCEEDED, Outcome.FAILED, Outcome.CANCELLED, Outcome.LOST);

/** 1970 to 9999, to the nanosecond. */
const instant: fc.Arbitrary<Timestamp> = fc
  .record({
    seconds: fc.oneof(
      fc.bigInt({ min: 1_500_000_000n, max: 2_000_000_000n }),
      fc.bigInt({ min: 0n, max: 253_402_300_799n }),
    ),
    nanos: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 999_999_999 })),
  })
  .map((init) => create(TimestampSchema, init));

const option = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const attempt = fc.record({
  endpointId: text(),
  providerSlug: text(),
  providerName: text(),
  byok: flag,
  outcome,
  reason: text(),
  providerStatus: fc.constantFrom(0, 200, 429, 599, 2 ** 31 - 1),
  startedAt: option(instant),
  firstByteMs: option(count),
  durationMs: count,
});

/** As JSON has numbers: what comes out of text, without -0. */
const trace: fc.Arbitrary<JsonObject> = fc
  .record(
    {
      trace_id: fc.oneof(text(), fc.uuid(), fc.stringMatching(/^[0-9a-fA-F]{32}$/)),
      parent_span_id: fc.oneof(text(), fc.stringMatching(/^[0-9a-f]{16}$/)),
      trace_name: fc.oneof(text(), fc.integer()),
      generation_name: text(),
    },
    { requiredKeys: [] },
  )
  .chain((known) =>
    fc
      .dictionary(text(8), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 })
      .map((other) => JSON.parse(JSON.stringify({ ...other, ...known })) as JsonObject),
  );

const tokens = fc.record({
  prompt: count,
  completion: count,
  reasoning: count,
  cachedPrompt: count,
  imagePrompt: count,
  imageCompletion: count,
  audioCompletion: count,
});

const units = fc.record({
  inputCharacters: count,
  outputImages: count,
  outputPixels: count,
  inputImages: count,
  outputAudioMs: count,
});

const parts = fc.record({
  eventId: fc.stringMatching(/^gen-(tts|img)-[0-9a-z]{1,20}$/),
  revision: fc.constantFrom(0, 1, 2 ** 31 - 1),
  requestId: text(),
  accountId: text(),
  memberId: text(),
  keyHash: text(),
  keyName: text(),
  endUser: text(),
  sessionId: text(),
  trace: option(trace),
  api: fc.constantFrom(Api.SPEECH, Api.IMAGE),
  model: text(),
  modelPermaslug: text(),
  endpointId: text(),
  providerSlug: text(),
  providerName: text(),
  byok: flag,
  tokens: option(tokens),
  units: option(units),
  costNanoUsd: count,
  listPriceNanoUsd: count,
  startedAt: option(instant),
  firstByteAt: option(instant),
  endedAt: option(instant),
  streamed: flag,
  cancelled: flag,
  outcome,
  reason: text(),
  attempts: fc.array(attempt, { maxLength: 3 }),
  providerReport: option(fc.record({ characters: option(count), costNanoUsd: option(count) })),
});

/** Any event: lost ones, numbers at their limits, text of any script, fields that are missing. */
export const anyGenerationEvent: fc.Arbitrary<GenerationEvent> = parts.map((init) =>
  create(GenerationEventSchema, {
    ...init,
    ...(init.trace === undefined ? {} : { trace: init.trace }),
  } as Parameters<typeof create<typeof GenerationEventSchema>>[1]),
);
