import { afterAll, beforeAll, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import type { ImageCall } from "../contract.ts";
import { describeCompatibleSpeech } from "../openai-compatible/speech.suite.ts";
import { openai } from "./index.ts";

const speech = {
  manifest: openai,
  startUpstream: startOpenAiUpstream,
  call: { upstreamModel: "gpt-4o-mini-tts", voice: "coral" },
  formats: ["mp3", "pcm"],
} as const;

describeCompatibleSpeech("OpenAI's answer as audio", speech);
const events = { ...speech, call: { ...speech.call, settings: { stream: "sse" } } };
describeCompatibleSpeech("OpenAI's answer as events", events, [
  {
    name: "a model without events",
    kind: "invalid_request",
    status: 400,
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "tts-1" } }),
  },
]);

const apiKey = "sk-the-right-one";
let upstream: OpenAiUpstream;
let http: OutboundHttp;

beforeAll(async () => {
  upstream = await startOpenAiUpstream({ apiKey });
  http = createOutboundHttp();
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});

test("the address may end with the version or without", async () => {
  const call = {
    upstreamModel: "tts-1",
    input: "x",
    voice: "alloy",
    format: "mp3",
    sampleRateHz: 24_000,
    channels: 1,
    speed: 1,
  } as const;
  for (const baseUrl of [upstream.baseUrl, `${upstream.baseUrl}/v1`]) {
    const answer = await (await openai.create({ http, fetchResult: noResults })).speech?.synthesize(
      { ...call, options: {}, settings: {} },
      {
        signal: new AbortController().signal,
        connection: { baseUrl, apiKey },
        onSent: () => undefined,
      },
    );
    for await (const chunk of answer?.audio ?? []) expect(chunk.length).toBeGreaterThan(0);
  }
  expect(upstream.requests.map(({ path, fate }) => [path, fate])).toEqual([
    ["/v1/audio/speech", "finished"],
    ["/v1/audio/speech", "finished"],
  ]);
});

test("draws, and edits what it is given, at the address with the version or without", async () => {
  upstream.requests.length = 0;
  const call: ImageCall = {
    upstreamModel: "gpt-image-2",
    prompt: "x",
    n: 1,
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
  const { image } = await openai.create({ http, fetchResult: noResults });
  const draw = async (more: Partial<ImageCall>, baseUrl: string) => {
    const connection = { baseUrl, apiKey };
    const context = { signal: new AbortController().signal, connection, onSent: () => undefined };
    const answer = await image?.generate({ ...call, ...more }, context);
    const [drawn] = await Array.fromAsync(answer?.output ?? []);
    return drawn?.kind === "image" ? drawn.bytes : new Uint8Array();
  };
  const bytes = await draw({}, upstream.baseUrl);
  await draw({ references: [{ bytes, mediaType: "image/png" }] }, `${upstream.baseUrl}/v1`);
  expect(upstream.requests.map(({ path, fate }) => [path, fate])).toEqual([
    ["/v1/images/generations", "finished"],
    ["/v1/images/edits", "finished"],
  ]);
});
