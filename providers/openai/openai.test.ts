import { afterAll, beforeAll, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai.ts";
import type { SpeechBehaviour } from "../../test/upstreams/openai-behaviour.ts";
import type { ImageCall, ProviderErrorKind, SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "../provider.suite.ts";
import { openai } from "./index.ts";

const apiKey = "sk-the-right-one";

interface Setup extends SpeechProviderSetup {
  readonly upstream: OpenAiUpstream;
}

function createSetup(settings: SpeechCall["settings"]) {
  return async (): Promise<Setup> => {
    const upstream = await startOpenAiUpstream({
      apiKey,
      // Slow enough for what looks at an answer amid its audio, and more than buffers hold for the long text.
      behave: ({ input }) =>
        input === "long"
          ? { kind: "audio", totalBytes: 32 * 1024 * 1024, chunkBytes: 64 * 1024 }
          : { kind: "audio", totalBytes: 40_000, chunkBytes: 2_000, intervalMs: 5 },
    });
    const http = createOutboundHttp();
    const { speech: adapter } = openai.create({ http });
    if (adapter === undefined) throw new Error("no speech");
    const call: SpeechCall = {
      upstreamModel: "gpt-4o-mini-tts",
      input: "A sentence nobody else may read.",
      voice: "coral",
      format: "mp3",
      speed: 1,
      options: {},
      settings,
    };
    const openRequests = () => upstream.requests.filter(({ fate }) => fate === "open").length;
    return {
      upstream,
      adapter,
      connection: { baseUrl: upstream.baseUrl, apiKey },
      call,
      formats: ["mp3", "pcm"],
      running: openRequests,
      pace: {
        longCall: { ...call, input: "long" },
        producedBytes: () => upstream.requests.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
        // The kernel's buffers of a connection over the loopback hold some 4 MiB, up to 10 by its usual limits.
        maxAheadBytes: 16 * 1024 * 1024,
      },
      close: async () => {
        await http.close();
        await upstream.close();
      },
    };
  };
}

function told(name: string, kind: ProviderErrorKind, behaviour: SpeechBehaviour): SpeechFailure<Setup> {
  const hasStatus = behaviour.kind !== "audio";
  return {
    name,
    kind,
    ...(hasStatus && { status: behaviour.status }),
    provoke: ({ upstream }) => {
      upstream.next(behaviour);
      return undefined;
    },
  };
}

const refused = (status: number, code?: string): SpeechBehaviour => ({
  kind: "error",
  status,
  message: `${apiKey} may not say: A sentence nobody else may read.`,
  ...(code !== undefined && { code }),
});
const plain = (contentType: string, body: string): SpeechBehaviour => ({
  kind: "plain",
  status: 200,
  headers: { "content-type": contentType },
  body,
});

const failures: SpeechFailure<Setup>[] = [
  told("400", "invalid_request", refused(400)),
  told("400 moderation_blocked", "content_policy", refused(400, "moderation_blocked")),
  told("403", "credentials", refused(403)),
  told("429", "overloaded", refused(429)),
  told("429 insufficient_quota", "credentials", refused(429, "insufficient_quota")),
  told("500", "upstream", refused(500)),
  told("503", "overloaded", refused(503)),
  told("504", "timeout", refused(504)),
  told("200 with JSON", "bad_answer", plain("application/json", "{}")),
  told("200 with a page", "bad_answer", plain("text/html", "<html></html>")),
  told("cut before the first byte", "network", { kind: "audio", cutAfterBytes: 0 }),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 401,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "sk-wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "tts-0" } }),
  },
  {
    name: "nobody there",
    kind: "network",
    provoke: ({ connection }) => ({ connection: { ...connection, baseUrl: "http://127.0.0.1:1" } }),
  },
];

describeSpeechProvider("OpenAI's answer as audio", createSetup({}), [
  ...failures,
  told("200 with nothing", "bad_answer", plain("audio/mpeg", "")),
]);
describeSpeechProvider("OpenAI's answer as events", createSetup({ stream: "sse" }), [
  ...failures,
  {
    name: "a model without events",
    kind: "invalid_request",
    status: 400,
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "tts-1" } }),
  },
]);

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
  const call = { upstreamModel: "tts-1", input: "x", voice: "alloy", format: "mp3", speed: 1 } as const;
  for (const baseUrl of [upstream.baseUrl, `${upstream.baseUrl}/v1`]) {
    const answer = await openai.create({ http }).speech?.synthesize(
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
  const { image } = openai.create({ http });
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
