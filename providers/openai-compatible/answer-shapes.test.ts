import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { imageOf, streamedWav } from "../../test/upstreams/compatible/compatible.ts";
import {
  type StandIn,
  type StandInAnswer,
  startStandIn,
} from "../../test/upstreams/stand-in/stand-in-server.ts";
import { attempt } from "../adapter.suite.ts";
import { type ImageCall, ProviderError, type ProviderErrorKind, type SpeechCall } from "../contract.ts";
import { createResultFetches } from "../upstream/network/fetch-result.ts";
import { createImageAdapter } from "./image.ts";
import { createSpeechAdapter } from "./speech.ts";

type Answering = (answer: StandInAnswer) => unknown;

let upstream: StandIn;
let elsewhere: StandIn;
let png: Buffer;
/** What the next request is answered with. */
let answering: Answering;
const http = createOutboundHttp();
const results = createResultFetches(createAddressGuard({ allowedCidrs: [] }));

beforeAll(async () => {
  png = await imageOf("64x64");
  elsewhere = await startStandIn((_, answer) => answer.send(200, { "content-type": "image/png" }, "inside"));
  upstream = await startStandIn(async ({ path }, answer) => {
    if (path === "/slow.png") return;
    if (path !== "/one.png") return void (await answering(answer));
    answer.start(200, { "content-type": "image/png", "content-length": String(png.length) });
    answer.end(png);
  });
});
afterAll(async () => {
  await Promise.all([http.close(), results.close(), upstream.close(), elsewhere.close()]);
});

const json =
  (body: unknown, headers: Record<string, string> = {}, status = 200): Answering =>
  (answer) =>
    answer.send(status, { "content-type": "application/json", ...headers }, JSON.stringify(body));
const raw =
  (body: Buffer, headers: Record<string, string>): Answering =>
  (answer) => {
    answer.start(200, { "content-length": String(body.length), ...headers });
    answer.end(body);
  };
const events =
  (...data: (object | string)[]): Answering =>
  (answer) => {
    const lines = data.map((each) => `data: ${typeof each === "string" ? each : JSON.stringify(each)}\n\n`);
    answer.send(200, { "content-type": "text/event-stream" }, lines.join(""));
  };

const speechCall: SpeechCall = {
  upstreamModel: "one",
  input: "A sentence nobody else may read.",
  voice: "ann",
  format: "pcm",
  sampleRateHz: 16_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

async function speak(call: Partial<SpeechCall>, answer: Answering) {
  answering = answer;
  const adapter = createSpeechAdapter({ http, path: "/v1/audio/speech" });
  const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey: "sk-secret" });
  const spoken = await adapter.synthesize({ ...speechCall, ...call }, context);
  const audio = Buffer.concat(await Array.fromAsync(spoken.audio)).toString();
  const { format, sampleRateHz } = spoken;
  return { audio, format, sampleRateHz, report: spoken.report() };
}

/** What an attempt throws, after audio or without. */
async function failureOf(given: Promise<unknown>): Promise<ProviderError> {
  const thrown = await given.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(ProviderError);
  return thrown as ProviderError;
}

const base64 = Buffer.from("ABCD").toString("base64");
const tokens = (prompt: number, completion: number) => ({ prompt, completion, audioCompletion: completion });

describe("speech", () => {
  test.for<[string, Answering, Partial<SpeechCall>, number]>([
    [
      "raw, at the rate of its content type",
      raw(Buffer.from("ABCD"), { "content-type": "audio/pcm;rate=22050" }),
      {},
      22_050,
    ],
    ["raw, at the catalogue's rate", raw(Buffer.from("ABCD"), { "content-type": "audio/pcm" }), {}, 16_000],
    [
      "wav, at the rate of its header",
      raw(streamedWav(Buffer.from("ABCD"), 44_100), { "content-type": "audio/wav" }),
      { format: "wav" },
      44_100,
    ],
    ["JSON", json({ audio: base64 }), { settings: { stream: "json" } }, 16_000],
    [
      "JSON in another field",
      json({ audio_data: base64 }),
      { settings: { stream: "json", audio_field: "audio_data" } },
      16_000,
    ],
    [
      "events",
      events({ type: "speech.audio.delta", audio: base64 }, { type: "speech.audio.done" }),
      { settings: { stream: "sse" } },
      16_000,
    ],
    [
      "events of another field",
      events({ type: "speech.audio.delta", audio_data: base64 }, { type: "speech.audio.done" }),
      { settings: { stream: "sse", audio_field: "audio_data" } },
      16_000,
    ],
    [
      "events of another shape, ended by the bare mark",
      events({ object: "audio.tts.chunk", b64: base64 }, "[DONE]"),
      { settings: { stream: "sse", audio_field: "b64" } },
      16_000,
    ],
  ])("as %s", async ([, answer, call, sampleRateHz]) => {
    expect(await speak(call, answer)).toMatchObject({ audio: "ABCD", format: "pcm", sampleRateHz });
  });

  const sse = { settings: { stream: "sse" } };
  const delta = { type: "speech.audio.delta", audio: base64 };
  const usage = { input_tokens: 3, output_tokens: 40 };
  const zeros = { input_tokens: 0, output_tokens: 0 };
  const usage_headers = {
    input_tokens: "X-In",
    output_tokens: "X-Out",
    characters: "X-Chars",
    cost_usd: "X-Cost",
  };
  test.for<[string, Answering, Partial<SpeechCall>, object | undefined]>([
    ["usage", events(delta, { type: "speech.audio.done", usage }), sse, { tokens: tokens(3, 40) }],
    [
      "token_usage",
      events(delta, { type: "speech.audio.done", token_usage: usage }),
      sse,
      { tokens: tokens(3, 40) },
    ],
    ["zeros", events(delta, { type: "speech.audio.done", token_usage: zeros }), sse, undefined],
    ["nothing", events(delta, { type: "speech.audio.done" }), sse, undefined],
    [
      "JSON's usage",
      json({ audio: base64, usage: { ...usage, cost: 0.5 } }),
      { settings: { stream: "json" } },
      { tokens: tokens(3, 40), costUsd: 0.5 },
    ],
    [
      "headers",
      raw(Buffer.from("AB"), { "x-in": "3", "x-out": "40", "x-chars": "12", "x-cost": "0.01" }),
      { settings: { usage_headers } },
      { tokens: tokens(3, 40), characters: 12, costUsd: 0.01 },
    ],
    [
      "some headers",
      raw(Buffer.from("AB"), { "x-in": "0", "x-chars": "12" }),
      { settings: { usage_headers } },
      { characters: 12 },
    ],
    [
      "no headers",
      raw(Buffer.from("AB"), { "x-in": "0", "x-out": "0", "x-cost": " " }),
      { settings: { usage_headers } },
      undefined,
    ],
    [
      "headers that are no numbers",
      raw(Buffer.from("AB"), { "x-cost": "much" }),
      { settings: { usage_headers } },
      { costUsd: Number.NaN },
    ],
  ])("reports %s", async ([, answer, call, report]) => {
    expect((await speak(call, answer)).report).toEqual(report);
  });

  test.for<[string, Answering, ProviderErrorKind]>([
    [
      "an event of failure",
      events(delta, { type: "speech.audio.error", error: { message: "No.", code: "server_error" } }),
      "upstream",
    ],
    [
      "an event of failure without an object",
      events(delta, { type: "speech.audio.error", message: "No." }),
      "upstream",
    ],
    ["a limit in an event", events(delta, { error: { type: "rate_limit_error" } }), "overloaded"],
    ["a text in an event", events(delta, { error: "No." }), "upstream"],
    ["a mark without audio", events("[DONE]"), "bad_answer"],
    ["no mark", events(delta), "network"],
  ])("events with %s throw", async ([, answer, kind]) => {
    expect((await failureOf(speak(sse, answer))).kind).toBe(kind);
  });

  test.for<[string, Answering, ProviderErrorKind]>([
    ["an error", json({ error: { code: "insufficient_quota" } }), "credentials"],
    ["no audio", json({ audio: null, error: null }), "bad_answer"],
    ["empty audio", json({ audio: "" }), "bad_answer"],
    ["no base64", json({ audio: "*" }), "bad_answer"],
    ["no object", json([base64]), "bad_answer"],
    ["audio as it is", raw(Buffer.from("AB"), { "content-type": "audio/pcm" }), "bad_answer"],
  ])("JSON with %s throws", async ([, answer, kind]) => {
    expect((await failureOf(speak({ settings: { stream: "json" } }, answer))).kind).toBe(kind);
  });

  test.for<[string, string, string, Partial<SpeechCall>]>([
    ["raw", "audio/pcm", "ABCDEFGH", {}],
    ["JSON", "application/json", JSON.stringify({ audio: base64, usage }), { settings: { stream: "json" } }],
    [
      "events",
      "text/event-stream",
      `data: {"b64":"${base64}"}\n\ndata: [DONE]\n\n`,
      { settings: { stream: "sse", audio_field: "b64" } },
    ],
  ])("cut at any byte never looks whole: %s", async ([, contentType, text, call]) => {
    const body = Buffer.from(text);
    // The last line ends of events say nothing more.
    const whole = contentType === "text/event-stream" ? body.length - 2 : body.length;
    for (let cut = 0; cut < whole; cut += 1) {
      const spoken = speak(call, async (answer) => {
        answer.start(200, { "content-type": contentType, "content-length": String(body.length) });
        await answer.write(body.subarray(0, cut));
        await answer.cut();
      });
      expect((await failureOf(spoken)).kind, `after ${cut} bytes`).toMatch(/network|bad_answer/);
    }
  });
});

const imageCall: ImageCall = {
  upstreamModel: "one",
  prompt: "A picture nobody else may know of.",
  n: 2,
  size: undefined,
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

async function draw(answer: Answering, call: Partial<ImageCall> = {}) {
  const drawn = await begin(answer, call);
  const output = await Array.fromAsync(drawn.output);
  return { output, report: drawn.report() };
}

async function begin(answer: Answering, call: Partial<ImageCall>) {
  answering = answer;
  const adapter = createImageAdapter({
    http,
    generationsPath: "/v1/images/generations",
    editsPath: "/v1/images/edits",
    fetchResult: results.of(upstream.baseUrl),
  });
  const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey: "sk-secret" });
  return await adapter.generate({ ...imageCall, ...call }, context);
}

describe("images", () => {
  const image = () => ({ kind: "image", bytes: png, mediaType: "image/png" });
  const dataUrl = () => `data:image/png;base64,${png.toString("base64")}`;
  const b64_json = () => png.toString("base64");
  const own = () => `${upstream.baseUrl}/one.png`;

  test("in base64, at the server's own address and in a data URL are the same", async () => {
    for (const item of [{ b64_json: b64_json(), url: null }, { url: own() }, { url: dataUrl() }]) {
      const { output } = await draw(json({ data: [item] }));
      expect(
        output.map((each) => ({ ...each, bytes: Buffer.from("bytes" in each ? each.bytes : "") })),
      ).toEqual([image()]);
    }
    const fetched = upstream.requests.filter(({ path }) => path === "/one.png");
    expect(fetched).toHaveLength(1);
    expect(fetched[0]?.headers).not.toHaveProperty("authorization");
  });

  test("at an address come one after another, also in events", async () => {
    expect(
      (await draw(json({ data: [{ url: own() }, { url: own() }, { url: own() }] }))).output,
    ).toHaveLength(2);
    const completed = { type: "image_generation.completed", url: own() };
    expect((await draw(events(completed, "[DONE]"), { n: 1 })).output).toHaveLength(1);
  });

  test("are not fetched on when nobody waits for them", async () => {
    const { output } = await begin(json({ data: [{ url: `${upstream.baseUrl}/slow.png` }] }), {});
    const images = output[Symbol.asyncIterator]();
    const waiting = images.next();
    const fetched = await upstream.received(upstream.requests.length + 1);
    expect(fetched.path).toBe("/slow.png");
    await Promise.all([images.return?.(), waiting]);
    expect(await fetched.ended).toBe("closed_by_client");
  });

  test.for<[string, () => unknown]>([
    ["another private address", () => `${elsewhere.baseUrl}/one.png`],
    ["what is not there", () => `${upstream.baseUrl}/gone.png`],
    ["a file", () => "file:///etc/passwd"],
    ["a data URL that is none", () => "data:image/png;base64,*"],
    ["a text in a data URL", () => `data:image/png;base64,${Buffer.from("text").toString("base64")}`],
    ["nothing", () => ""],
    ["a number", () => 7],
  ])("at %s are none", async ([, url]) => {
    const before = elsewhere.requests.length;
    await failureOf(
      draw((answer) => {
        const data = upstream.requests.at(-1)?.path === "/gone.png" ? [] : [{ url: url() }];
        json({ data })(answer);
      }),
    );
    expect(elsewhere.requests.length).toBe(before);
  });

  test.for<[unknown, object | undefined]>([
    [undefined, undefined],
    [{ input_tokens: 0, output_tokens: 0, total_tokens: 0 }, undefined],
    [{ cost: 0.04 }, { costUsd: 0.04 }],
    [{ cost: "much" }, { costUsd: Number.NaN }],
    [
      { prompt_tokens: 5, completion_tokens: 9, cost: 0.04 },
      { tokens: { prompt: 5, completion: 9 }, costUsd: 0.04 },
    ],
  ])("report %o", async ([usage, report = {}]) => {
    const { report: got } = await draw(json({ data: [{ b64_json: b64_json() }], usage }));
    expect({ tokens: got?.tokens, costUsd: got?.costUsd }).toMatchObject(report);
    if (!("tokens" in report)) expect(got?.tokens).toBeUndefined();
    if (!("costUsd" in report)) expect(got?.costUsd).toBeUndefined();
  });
});

describe("a refusal", () => {
  const words = `sk-secret may not say: ${speechCall.input} ${imageCall.prompt}`;
  const page =
    (status: number): Answering =>
    (answer) =>
      answer.send(status, { "content-type": "text/html" }, `<html>${words}</html>`);

  test.for<[string, Answering, ProviderErrorKind, number]>([
    ["OpenAI's", json({ error: { message: words, type: "t", code: "c" } }, {}, 400), "invalid_request", 400],
    [
      "an unknown model, by 400",
      json({ detail: { error: "invalid_model", message: words, type: "t" } }, {}, 400),
      "invalid_request",
      400,
    ],
    ["a text under error", json({ error: words }, {}, 500), "upstream", 500],
    ["a text under detail", json({ detail: words }, {}, 503), "overloaded", 503],
    [
      "a list of faults",
      json({ detail: [{ loc: ["body", "speed"], msg: words, type: "v" }] }, {}, 422),
      "invalid_request",
      422,
    ],
    ["a code that is a number", json({ error: { code: 429, message: words } }, {}, 429), "overloaded", 429],
    [
      "a wrong key",
      json({ error: { message: words, type: "authentication_error" } }, {}, 401),
      "credentials",
      401,
    ],
    [
      "an empty account",
      json({ error: { message: words, code: "insufficient_quota" } }, {}, 429),
      "credentials",
      429,
    ],
    [
      "moderation",
      json({ error: { message: words, code: "content_filter" } }, {}, 400),
      "content_policy",
      400,
    ],
    [
      "moderation as Azure names it for images",
      json({ error: { message: words, code: "contentFilter" } }, {}, 400),
      "content_policy",
      400,
    ],
    ["a proxy's page", page(502), "upstream", 502],
    ["a page for an unknown path", page(404), "invalid_request", 404],
  ])("of the shape of %s is understood and repeats nothing", async ([, answer, kind, status]) => {
    for (const asked of [speak({}, answer), draw(answer)]) {
      const { message, cause, ...thrown } = await failureOf(asked);
      expect(thrown).toMatchObject({ kind, status });
      for (const secret of ["sk-secret", speechCall.input, imageCall.prompt])
        expect(message).not.toContain(secret);
      expect(String(cause)).not.toContain("sk-secret");
    }
  });
});
