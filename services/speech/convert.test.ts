import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ProviderSort } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import {
  AudioFormat,
  SynthesizeRequestSchema,
  SynthesizeResponseSchema,
} from "../../gen/media/speech/v1/speech_pb.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { speechEndpoint } from "../../test/fakes/fake-speech.ts";
import { fromProtoSynthesizeRequest, toProtoFrame } from "./convert.ts";

type RequestFields = MessageInitShape<typeof SynthesizeRequestSchema>;

function convert(fields: RequestFields) {
  return fromProtoSynthesizeRequest(
    create(SynthesizeRequestSchema, { input: "Hello.", model: "acme/voice", ...fields }),
  );
}

function faultsOf(fields: RequestFields): readonly Issue[] {
  try {
    convert(fields);
    return [];
  } catch (thrown) {
    if (!(thrown instanceof DomainError)) throw thrown;
    expect(thrown.reason).toBe(ErrorReason.INVALID_BODY);
    return thrown.issues;
  }
}

/** An object whose JSON has so many bytes. */
function jsonOfBytes(bytes: number, filler = "x"): JsonObject {
  const empty = JSON.stringify({ a: "" }).length;
  return { a: filler.repeat((bytes - empty) / Buffer.byteLength(filler)) };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => `provider-${index}`);
const kib = 1024;
/** JSON of the options around those of one provider: `{"acme":…}`. */
const optionsAround = '{"acme":}'.length;

describe("a request", () => {
  test("becomes what it says", () => {
    const provider = { order: ["acme"], sort: ProviderSort.PRICE, allowFallbacks: false };
    const instructions = "Softly.";
    const request = convert({
      voice: "anna",
      responseFormat: AudioFormat.PCM,
      speed: 1.5,
      instructions,
      provider,
    });
    expect(request).toMatchObject({
      input: "Hello.",
      model: "acme/voice",
      voice: "anna",
      format: "pcm",
      speed: 1.5,
      instructions,
      preferences: provider,
    });
  });

  test("has its defaults", () => {
    expect(convert({})).toEqual({
      input: "Hello.",
      model: "acme/voice",
      voice: undefined,
      format: "mp3",
      speed: undefined,
      preferences: undefined,
    });
    expect(convert({ responseFormat: AudioFormat.MP3 }).format).toBe("mp3");
  });

  test.for<[string, RequestFields]>([
    ["the slowest speed", { speed: 0.25 }],
    ["the fastest speed", { speed: 4 }],
    ["256 characters of user", { user: "u".repeat(256) }],
    ["256 characters of user outside of the first plane", { user: "😀".repeat(256) }],
    ["256 characters of session", { sessionId: "😀".repeat(256) }],
    ["16 KiB of trace", { trace: jsonOfBytes(16 * kib) }],
    ["16 KiB of trace in characters of two bytes", { trace: jsonOfBytes(16 * kib, "é") }],
    ["an empty trace", { trace: {} }],
    ["64 KiB of options", { provider: { options: { acme: jsonOfBytes(64 * kib - optionsAround) } } }],
    ["32 providers in each list", { provider: { order: names(32), only: names(32), ignore: names(32) } }],
    ["an input of blanks", { input: " " }],
    ["4,096 characters of instructions", { instructions: "😀".repeat(4096) }],
  ])("may have %s", ([, fields]) => {
    expect(faultsOf(fields)).toEqual([]);
  });
});

describe("a request is refused for", () => {
  const speedFault = { path: "speed", message: "must be from 0.25 to 4" };
  const formatFault = { path: "response_format", message: "must be mp3 or pcm" };
  const longLabel = "must be at most 256 characters";
  const longTrace = { path: "trace", message: "must be at most 16384 bytes as JSON" };
  const longOptions = { path: "provider.options", message: "must be at most 65536 bytes as JSON" };
  const withoutNul = "must not contain U+0000";
  const tooMany = "must name at most 32 providers";

  test.for<[string, RequestFields, Issue]>([
    ["no input", { input: "" }, { path: "input", message: "is required" }],
    ["no model", { model: "" }, { path: "model", message: "is required" }],
    ["an empty voice", { voice: "" }, { path: "voice", message: "must not be empty" }],
    ["empty instructions", { instructions: "" }, { path: "instructions", message: "must not be empty" }],
    [
      "instructions that are too long",
      { instructions: "x".repeat(4097) },
      { path: "instructions", message: "must be at most 4096 characters" },
    ],
    ["an unknown format", { responseFormat: 7 as AudioFormat }, formatFault],
    ["a user that is too long", { user: "u".repeat(257) }, { path: "user", message: longLabel }],
    ["a user of too many code points", { user: "😀".repeat(257) }, { path: "user", message: longLabel }],
    [
      "a session that is too long",
      { sessionId: "s".repeat(257) },
      { path: "session_id", message: longLabel },
    ],
    ["a trace that is too long", { trace: jsonOfBytes(16 * kib + 1) }, longTrace],
    ["a trace of too many bytes", { trace: jsonOfBytes(16 * kib + 2, "é") }, longTrace],
    ["a user with U+0000", { user: "a\0b" }, { path: "user", message: withoutNul }],
    ["a session with U+0000", { sessionId: "\0" }, { path: "session_id", message: withoutNul }],
    ["a trace with U+0000", { trace: { a: [{ b: "c\0" }] } }, { path: "trace", message: withoutNul }],
    ["a trace with U+0000 in a name", { trace: { a: { "b\0": 1 } } }, { path: "trace", message: withoutNul }],
    [
      "options that are too long",
      { provider: { options: { acme: jsonOfBytes(64 * kib - optionsAround + 1) } } },
      longOptions,
    ],
    [
      "options that are too long together",
      { provider: { options: { acme: jsonOfBytes(40 * kib), zenith: jsonOfBytes(40 * kib) } } },
      longOptions,
    ],
    ["order", { provider: { order: names(33) } }, { path: "provider.order", message: tooMany }],
    ["only", { provider: { only: names(33) } }, { path: "provider.only", message: tooMany }],
    ["ignore", { provider: { ignore: names(33) } }, { path: "provider.ignore", message: tooMany }],
  ])("%s", ([, fields, fault]) => {
    expect(faultsOf(fields)).toEqual([fault]);
  });

  test.for([0.2499, 4.0001, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])(
    "the speed %d",
    (speed) => {
      expect(faultsOf({ speed })).toEqual([speedFault]);
    },
  );

  test("all of its faults at once", () => {
    const faults = faultsOf({
      input: "",
      model: "",
      voice: "",
      speed: 9,
      user: "u".repeat(300),
      sessionId: "s".repeat(300),
      trace: jsonOfBytes(20 * kib),
      provider: { order: names(40), options: { acme: jsonOfBytes(70 * kib) } },
      responseFormat: 9 as AudioFormat,
    });
    expect(faults.map(({ path }) => path)).toEqual([
      "input",
      "model",
      "voice",
      "speed",
      "user",
      "session_id",
      "trace",
      "provider.order",
      "provider.options",
      "response_format",
    ]);
  });
});

describe("a frame on the wire", () => {
  test("says at its start who serves, and what of the request has no effect", () => {
    const frame = toProtoFrame({
      kind: "started",
      generationId: "gen-tts-1",
      format: "pcm",
      sampleRateHz: 24_000,
      channels: 2,
      endpoint: speechEndpoint(),
      ignoredParameters: ["speed", "provider.options.acme.pitch"],
    });
    expect(create(SynthesizeResponseSchema, frame).frame).toMatchObject({
      case: "started",
      value: {
        generationId: "gen-tts-1",
        format: AudioFormat.PCM,
        sampleRateHz: 24_000,
        channels: 2,
        endpoint: {
          endpointId: "endpoint-of-acme",
          model: "acme/voice",
          modelPermaslug: "acme/voice-2030-01-01",
          providerSlug: "acme",
          providerName: "ACME",
        },
        ignoredParameters: ["speed", "provider.options.acme.pitch"],
      },
    });
  });

  test("holds the audio as it is", () => {
    const bytes = Buffer.from([1, 2, 3]);
    expect(toProtoFrame({ kind: "audio", bytes }).frame).toEqual({ case: "audio", value: bytes });
  });

  test("says at its end how much was spoken", () => {
    const frame = toProtoFrame({
      kind: "finished",
      inputCharacters: 6n,
      promptTokens: 1n,
      completionTokens: 2n,
      costNanoUsd: 3n,
    });
    expect(create(SynthesizeResponseSchema, frame).frame).toMatchObject({
      case: "finished",
      value: { inputCharacters: 6n, promptTokens: 1n, completionTokens: 2n, costNanoUsd: 3n },
    });
  });
});
