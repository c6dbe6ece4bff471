import { fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { ProviderSort } from "../../gen/media/routing/v1/provider_preferences_pb.ts";
import { AudioFormat, SynthesizeRequestSchema } from "../../gen/media/speech/v1/speech_pb.ts";
import { defaultMessageLimits } from "../../lib/rpc/registered-method.ts";
import { DomainError, type Issue } from "../../lib/runtime/domain-error.ts";
import { type JsonObject, parseJsonBody } from "../body/json-body.ts";
import { speechBodySchema, toSynthesizeRequest } from "./body.ts";

const least = { input: "Hello.", model: "acme/one" };

function refusalOf(body: JsonObject): DomainError {
  try {
    toSynthesizeRequest(body);
  } catch (thrown) {
    return DomainError.from(thrown);
  }
  throw new Error("was accepted");
}

function issuesOf(body: JsonObject): readonly Issue[] {
  const { reason, issues } = refusalOf(body);
  expect(reason).toBe(ErrorReason.INVALID_BODY);
  return issues;
}

describe("a body that is accepted", () => {
  test("needs input and model alone", () => {
    const request = toSynthesizeRequest(least);
    expect(request).toMatchObject({ ...least, responseFormat: AudioFormat.MP3, user: "", sessionId: "" });
    expect([request.voice, request.speed, request.provider, request.trace]).toEqual(Array(4).fill(undefined));
  });

  test("is passed on with every field", () => {
    const options = { acme: { style: "calm", nested: { list: [1, null, "x"] } } };
    const body = {
      ...least,
      voice: "ash",
      response_format: "pcm",
      speed: 1.5,
      instructions: "Softly.",
      user: "u",
      session_id: "s",
      trace: { trace_id: "t", extra: [{ deep: null }] },
      provider: {
        order: ["a"],
        only: ["b"],
        ignore: ["c"],
        allow_fallbacks: false,
        sort: "latency",
        options,
      },
    };
    const sent = fromBinary(
      SynthesizeRequestSchema,
      toBinary(SynthesizeRequestSchema, toSynthesizeRequest(body)),
    );
    expect(sent).toMatchObject({ voice: "ash", responseFormat: AudioFormat.PCM, speed: 1.5, user: "u" });
    expect(sent).toMatchObject({ sessionId: "s", trace: body.trace, instructions: "Softly." });
    expect(sent.provider).toMatchObject({ order: ["a"], only: ["b"], ignore: ["c"], allowFallbacks: false });
    expect(sent.provider).toMatchObject({ sort: ProviderSort.LATENCY, options });
  });

  test("may hold nulls where a field may be absent, and fields that nobody knows", () => {
    const nulls = {
      voice: null,
      response_format: null,
      speed: null,
      user: null,
      session_id: null,
      trace: null,
    };
    expect(toSynthesizeRequest({ ...least, ...nulls, provider: null })).toEqual(toSynthesizeRequest(least));
    const provider = { order: null, only: null, ignore: null, allow_fallbacks: null, sort: null };
    const preferences = toSynthesizeRequest({ ...least, provider: { ...provider, options: { acme: null } } });
    expect(preferences.provider).toMatchObject({ order: [], only: [], ignore: [], options: {} });
    expect(preferences.provider?.allowFallbacks).toBeUndefined();
    const extras = {
      stream_format: "sse",
      input_references: [{ type: "text" }],
      constructor: 1,
      __proto__: 2,
    };
    expect(toSynthesizeRequest({ ...least, ...extras })).toEqual(toSynthesizeRequest(least));
  });

  test("counts characters, not UTF-16 units", () => {
    expect(toSynthesizeRequest({ ...least, user: "💬".repeat(256) }).user).toBe("💬".repeat(256));
    expect(issuesOf({ ...least, user: "💬".repeat(257) })).toMatchObject([{ path: "user" }]);
  });

  test("has instructions of up to 4,096 characters, and empty ones as none", () => {
    const longest = "😀".repeat(4096);
    expect(toSynthesizeRequest({ ...least, instructions: longest }).instructions).toBe(longest);
    expect(toSynthesizeRequest({ ...least, instructions: "" }).instructions).toBeUndefined();
  });

  test("fits a message between processes and its decoder, however large and deep its fields are", () => {
    const numbers = Array.from({ length: 32_700 }, () => 1);
    const nested = (levels: number): object => (levels === 1 ? { x: 1 } : { x: nested(levels - 1) });
    const slug = (index: number) => `${"語".repeat(250)}${index}`;
    const slugs = Array.from({ length: 32 }, (_, index) => slug(index));
    const body = {
      input: "語".repeat(131_072),
      model: "語".repeat(256),
      voice: "語".repeat(256),
      user: "💬".repeat(256),
      trace: nested(20),
      provider: { order: slugs, only: slugs, ignore: slugs, options: { acme: { numbers } } },
    };
    const bytes = toBinary(SynthesizeRequestSchema, toSynthesizeRequest(body));
    expect(bytes.byteLength).toBeLessThan(defaultMessageLimits.writeMaxBytes);
    expect(fromBinary(SynthesizeRequestSchema, bytes).trace).toEqual(nested(20));
  });
});

describe("a body that is refused", () => {
  test.for([
    [{}, ["input", "model"]],
    [{ input: null, model: "acme/one" }, ["input"]],
    [{ ...least, input: "" }, ["input"]],
    [{ ...least, input: 5 }, ["input"]],
    [{ ...least, input: "x".repeat(400_000) }, ["input"]],
    [{ ...least, model: "" }, ["model"]],
    [{ ...least, model: ["acme/one"] }, ["model"]],
    [{ ...least, voice: "" }, ["voice"]],
    [{ ...least, voice: { id: "ash" } }, ["voice"]],
    [{ ...least, response_format: "wav" }, ["response_format"]],
    [{ ...least, response_format: "MP3" }, ["response_format"]],
    [{ ...least, speed: "1" }, ["speed"]],
    [{ ...least, speed: Number.POSITIVE_INFINITY }, ["speed"]],
    [{ ...least, speed: true }, ["speed"]],
    [{ ...least, instructions: 7 }, ["instructions"]],
    [{ ...least, instructions: "😀".repeat(4097) }, ["instructions"]],
    [{ ...least, user: 7 }, ["user"]],
    [{ ...least, session_id: "x".repeat(257) }, ["session_id"]],
    [{ ...least, trace: "t" }, ["trace"]],
    [{ ...least, trace: [] }, ["trace"]],
    [{ ...least, trace: { x: "y".repeat(16_384) } }, ["trace"]],
    [{ ...least, trace: { x: Number.NEGATIVE_INFINITY } }, ["trace"]],
    [{ ...least, provider: "acme" }, ["provider"]],
    [{ ...least, provider: { order: "acme" } }, ["provider.order"]],
    [{ ...least, provider: { only: [1] } }, ["provider.only.0"]],
    [{ ...least, provider: { ignore: Array(33).fill("a") } }, ["provider.ignore"]],
    [{ ...least, provider: { allow_fallbacks: "no" } }, ["provider.allow_fallbacks"]],
    [{ ...least, provider: { sort: "exacto" } }, ["provider.sort"]],
    [{ ...least, provider: { sort: { by: "price" } } }, ["provider.sort"]],
    [{ ...least, provider: { options: [] } }, ["provider.options"]],
    [{ ...least, provider: { options: { acme: 1 } } }, ["provider.options.acme"]],
    [{ ...least, provider: { options: { "a\nb": 1 } } }, ["provider.options.a\nb"]],
    [{ ...least, provider: { options: { acme: { x: "y".repeat(65_536) } } } }, ["provider.options"]],
  ] as const)("%j", ([body, paths]) => {
    const found = new Set(issuesOf(body).map(({ path }) => path));
    expect([...found].sort()).toEqual([...paths].sort());
  });

  test("names every fault and quotes none of the text", () => {
    const word = "seashell";
    const body = { input: [word], model: 5, response_format: word, provider: { order: word, sort: word } };
    const issues = issuesOf(body);
    expect(issues).toHaveLength(5);
    expect(JSON.stringify(issues)).not.toContain(word);
    expect(issues).toContainEqual({ path: "response_format", message: "must be one of mp3, pcm" });
    expect(issuesOf({ model: "acme/one" })).toEqual([{ path: "input", message: "is required" }]);
  });

  test("by its depth, before anything recursive meets it", () => {
    const deep = JSON.parse(`{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`) as object;
    expect(issuesOf({ ...least, trace: deep })).toMatchObject([{ path: "trace" }]);
    expect(issuesOf({ ...least, provider: { options: { acme: deep } } })).toMatchObject([
      { path: "provider.options" },
    ]);
    expect(toSynthesizeRequest({ ...least, unknown: deep })).toEqual(toSynthesizeRequest(least));
  });

  test("as an unknown model when its name is longer than any", () => {
    expect(refusalOf({ ...least, model: "x".repeat(257) }).reason).toBe(ErrorReason.MODEL_UNKNOWN);
  });
});

describe("the text of a body", () => {
  const json = { "content-type": "application/json" };
  const text = JSON.stringify(least);

  test.for([
    [{ "content-type": "application/json" }],
    [{ "content-type": "Application/JSON; charset=UTF-8" }],
    [{ "content-type": 'application/json;charset="utf-8"' }],
    [{ "content-type": "application/json; boundary=x", "content-encoding": "identity" }],
  ] as const)("is taken with %j", ([headers]) => {
    expect(parseJsonBody(Buffer.from(text), headers)).toEqual(least);
  });

  test.for([
    [{}, text],
    [{ "content-type": "text/plain" }, text],
    [{ "content-type": "application/jsonp" }, text],
    [{ "content-type": "application/json; charset=latin1" }, text],
    [{ ...json, "content-encoding": "gzip" }, text],
    [json, ""],
    [json, "{"],
    [json, `${text}}`],
    [json, "[]"],
    [json, "null"],
    [json, '"text"'],
    [json, '{"input":"\\ud83d"}'],
    [json, '{"x":[{"\\uDC00":1}]}'],
    [json, Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ] as const)("is refused: %j %j", ([headers, body]) => {
    const parse = () => parseJsonBody(Buffer.from(body as string), headers);
    expect(parse).toThrow(DomainError);
    expect(parse).toThrow(expect.objectContaining({ reason: ErrorReason.INVALID_BODY }));
  });

  test("may hold whole surrogate pairs as escapes, and backslashes before what looks like one", () => {
    const body = Buffer.from('{"input":"\\ud83d\\ude00 \\\\ud800"}');
    expect(parseJsonBody(body, json)).toEqual({ input: "😀 \\ud800" });
  });
});

test("any JSON object is either refused with a reason or becomes a request that can be sent", () => {
  const names = Object.keys(speechBodySchema.properties);
  const field = fc.oneof(fc.jsonValue(), fc.constantFrom("mp3", "acme/one", 1, {}, { options: { a: {} } }));
  const body = fc.dictionary(fc.constantFrom(...names, "other"), field);
  fc.assert(
    fc.property(
      fc.oneof(
        body,
        body.map((fields) => ({ ...least, ...fields })),
      ),
      (fields) => {
        try {
          toBinary(SynthesizeRequestSchema, toSynthesizeRequest(fields));
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(DomainError);
          expect((thrown as DomainError).issues.length).toBeGreaterThan(0);
        }
      },
    ),
    { numRuns: 1000 },
  );
});
