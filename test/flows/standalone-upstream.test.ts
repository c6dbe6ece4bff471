import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  bytesOf,
  openAiEnv,
  type SpeakOptions,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";
import type { SpeechBehaviour } from "../upstreams/openai/openai-behaviour.ts";
import { createAudioSource, firstBytes } from "../upstreams/stand-in/audio-source.ts";

/** What no answer and no log line may show: the upstream's words, and the caller's. */
const upstreamWords = "marmalade at https://internal.example.test";
const input = "Clandestine words.";
const hello = { model: "openai/tts-1", voice: "alloy", input };
const endpointId = "3291a345-5d34-4c0a-b606-d4b4a367f7a7";
const withEvents = { ...hello, model: "openai/gpt-4o-mini-tts" };

let upstream: OpenAiUpstream;
let stack: TestStandalone;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  stack = await startTestStandalone({ ...openAiEnv(upstream), CLIENT_STALL_TIMEOUT_MS: "2000" });
});

afterAll(async () => {
  await stack.close();
  await upstream.close();
});

function say(body: object = hello, options: SpeakOptions = {}): Promise<Response> {
  return speak(stack, stack.inferenceKey, body, options);
}

/** A promise for a stand-in to wait for, and what lets it go on. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { wait: () => promise, open: resolve };
}

/** The next request that the stand-in receives from now on. */
function nextRequest() {
  return upstream.received(upstream.requests.length + 1);
}

describe("audio of a provider", () => {
  test.for([
    ["mp3", "audio/mpeg"],
    ["pcm", "audio/pcm"],
  ] as const)("comes through as it is: %s", async ([format, contentType]) => {
    upstream.next({ kind: "audio", totalBytes: 1_500_000, chunkBytes: 60_000 });
    const request = nextRequest();
    const response = await say({ ...hello, response_format: format, speed: 1.5 });
    expect(response.headers.get("content-type")).toBe(contentType);
    expect(response.headers.get("x-audio-sample-rate")).toBe("24000");
    expect(response.headers.get("x-audio-channels")).toBe("1");
    expect((await bytesOf(response)).equals(firstBytes(createAudioSource(format), 1_500_000))).toBe(true);
    const { json, headers } = await request;
    expect(json).toEqual({ model: "tts-1", voice: "alloy", input, response_format: format, speed: 1.5 });
    expect(headers.authorization).toBe("Bearer test-key");
    expect(JSON.stringify(headers)).not.toContain(stack.inferenceKey);
  });

  test.for([["audio itself", hello] as const, ["events", withEvents] as const])(
    "reaches the client while the provider still makes the rest: %s",
    async ([, body]) => {
      const rest = gate();
      upstream.next({
        kind: "audio",
        totalBytes: 8192,
        beforeChunk: (index) => (index === 0 ? undefined : rest.wait()),
      });
      const request = nextRequest();
      const reader = (await say(body)).body?.getReader();
      const first = await reader?.read();
      expect(first?.value?.length).toBeGreaterThan(0);
      expect((await request).fate).toBe("open");
      rest.open();
      let length = first?.value?.length ?? 0;
      for (let next = await reader?.read(); next?.value !== undefined; next = await reader?.read()) {
        length += next.value.length;
      }
      expect(length).toBe(8192);
    },
  );

  test("is asked for with what the catalogue lets through; the rest is named in a header", async () => {
    const request = nextRequest();
    const options = { instructions: "Whisper.", stream_format: "audio", colour: "red" };
    const response = await say({
      ...withEvents,
      instructions: "Shout.",
      provider: { options: { openai: options } },
    });
    await bytesOf(response);
    expect(response.headers.get("x-ignored-parameters")).toBe(
      "provider.options.openai.stream_format,provider.options.openai.colour,provider.options.openai.instructions",
    );
    expect((await request).json).toEqual({
      model: "gpt-4o-mini-tts-2025-12-15",
      voice: "alloy",
      input,
      instructions: "Shout.",
      response_format: "mp3",
      stream_format: "sse",
    });
  });

  test("is asked for without who asks and why", async () => {
    const request = nextRequest();
    const attribution = { user: "u-7", session_id: "s-8", trace: { trace_id: "t-9" } };
    await bytesOf(await say({ ...hello, ...attribution }));
    expect((await request).text).not.toMatch(/u-7|s-8|t-9/);
  });

  test("has no longer text than the model takes, in characters and not in bytes", async () => {
    expect((await say({ ...hello, input: "😀".repeat(4096) })).status).toBe(200);
    const request = nextRequest();
    expect((await say({ ...hello, input: "😀".repeat(4097) })).status).toBe(400);
    await bytesOf(await say());
    expect((await request).json).toMatchObject({ input });
  });

  test.for([["the audio itself", hello] as const, ["events", withEvents] as const])(
    "is made until it is charged for once the client has left: %s",
    async ([, body]) => {
      const isByTokens = body === withEvents;
      const [amidEnd, earlyStart] = [gate(), gate()];
      upstream.next(
        isByTokens ? { kind: "audio", beforeEnd: amidEnd.wait } : { kind: "audio", stallAfterBytes: 4096 },
        { kind: "audio", beforeHeaders: earlyStart.wait, ...(isByTokens ? {} : { stallAfterBytes: 4096 }) },
      );
      const fate = isByTokens ? "finished" : "closed_by_client";
      const amid = new AbortController();
      const amidRequest = nextRequest();
      const response = await say(body, { signal: amid.signal });
      expect((await response.body?.getReader().read())?.done).toBe(false);
      amid.abort();
      amidEnd.open();
      expect(await (await amidRequest).ended).toBe(fate);

      const early = new AbortController();
      const earlyRequest = nextRequest();
      const unanswered = say(body, { signal: early.signal }).catch((thrown: Error) => thrown.name);
      const asked = await earlyRequest;
      early.abort();
      expect(await unanswered).toBe("AbortError");
      expect(asked.fate).toBe("open");
      earlyStart.open();
      expect(await asked.ended).toBe(fate);
    },
  );
});

type Failure = [
  name: string,
  behaviour: SpeechBehaviour,
  status: number,
  reason: string,
  from: number | null,
];
const refusal = (status: number, more: { code?: string; headers?: Record<string, string> } = {}) =>
  ({ kind: "error", status, message: upstreamWords, ...more }) as const;
const page = (status: number, contentType: string): SpeechBehaviour => ({
  kind: "plain",
  status,
  headers: { "content-type": contentType },
  body: `<p>${upstreamWords}</p>`,
});

describe("a failure of a provider", () => {
  // A success in between keeps the endpoint's breaker closed.
  afterEach(async () => {
    await bytesOf(await say());
  });

  test.for<Failure>([
    ["400", refusal(400), 502, "provider_failed", 400],
    ["401", refusal(401), 502, "provider_credentials", 401],
    ["no quota", refusal(429, { code: "insufficient_quota" }), 502, "provider_credentials", 429],
    ["403", refusal(403), 502, "provider_credentials", 403],
    ["404", refusal(404), 502, "provider_failed", 404],
    ["its policy", refusal(400, { code: "content_policy_violation" }), 502, "content_policy", 400],
    ["429", refusal(429), 529, "provider_overloaded", 429],
    ["500", refusal(500), 502, "provider_failed", 500],
    ["503", refusal(503), 529, "provider_overloaded", 503],
    ["504", refusal(504), 524, "timed_out", 504],
    ["a proxy's page", page(502, "text/html"), 502, "provider_failed", 502],
    ["a page for audio", page(200, "text/html"), 502, "provider_bad_answer", 200],
    ["a redirect", page(302, "text/html"), 502, "provider_bad_answer", 302],
    ["no audio", { kind: "audio", totalBytes: 0 }, 502, "provider_bad_answer", 200],
    ["cut before audio", { kind: "audio", cutAfterBytes: 0 }, 502, "provider_failed", null],
  ])("before its first byte is an error of its own kind: %s", async ([, behaviour, status, reason, from]) => {
    upstream.next(behaviour);
    const response = await say();
    expect(response.status).toBe(status);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-generation-id")).toMatch(/^gen-tts-/);
    const text = await response.text();
    expect(JSON.parse(text)).toEqual({
      error: {
        code: status,
        message: status === 524 ? "Request timed out. Please try again later." : "Provider returned error",
        metadata: {
          reason,
          provider_name: "OpenAI",
          ...(from === null ? {} : { provider_status: from }),
          attempts: [{ provider_name: "OpenAI", endpoint_id: endpointId, status: from, reason }],
        },
      },
    });
    for (const word of ["marmalade", "internal.example", "127.0.0.1", String(upstream.port), input]) {
      expect(text).not.toContain(word);
    }
  });

  test("by overload says when to come back", async () => {
    upstream.next(refusal(429, { headers: { "retry-after": "7" } }));
    const response = await say();
    expect([response.status, response.headers.get("retry-after")]).toEqual([529, "7"]);
    expect(await response.json()).toMatchObject({ error: { metadata: { retry_after_s: 7 } } });
  });

  test.for<[string, object, SpeechBehaviour]>([
    ["cut, chunked", hello, { kind: "audio", cutAfterBytes: 8192 }],
    ["cut, with a length", hello, { kind: "audio", cutAfterBytes: 8192, framing: "length" }],
    ["reset", hello, { kind: "audio", cutAfterBytes: 8192, cutWith: "reset" }],
    ["events, cut", withEvents, { kind: "audio", cutAfterBytes: 8192 }],
    ["events, an error", withEvents, { kind: "audio", errorAfterBytes: 8192 }],
    ["events, no end", withEvents, { kind: "audio", totalBytes: 8192, omitDone: true }],
  ])(
    "amid its audio breaks the connection, so that half never looks whole: %s",
    async ([, body, behaviour]) => {
      const seen = gate();
      upstream.next({
        ...behaviour,
        beforeChunk: (index) => (index === 0 ? undefined : seen.wait()),
      } as SpeechBehaviour);
      const response = await say(body);
      expect(response.status).toBe(200);
      const reader = response.body?.getReader();
      expect((await reader?.read())?.done).toBe(false);
      seen.open();
      const readOn = async () => {
        for (;;) if ((await reader?.read())?.done) return "ended as if whole";
      };
      await expect(readOn()).rejects.toThrow(/terminated|other side closed/);
    },
  );
});

test("a provider that keeps failing is left alone for a while", async () => {
  const body = { ...hello, model: "openai/tts-1-hd" };
  const before = upstream.requests.length;
  const statuses: number[] = [];
  for (let failures = 0; failures < 5; failures += 1) {
    upstream.next(refusal(500));
    statuses.push((await say(body)).status);
  }
  expect(statuses).toEqual([502, 502, 502, 502, 502]);
  const response = await say(body);
  expect(response.status).toBe(529);
  const retryAfter = Number(response.headers.get("retry-after"));
  expect(retryAfter).toBeGreaterThan(0);
  expect(retryAfter).toBeLessThanOrEqual(15);
  expect(await response.json()).toEqual({
    error: {
      code: 529,
      message: "Provider returned error",
      metadata: { reason: "provider_overloaded", retry_after_s: expect.any(Number) },
    },
  });
  expect(upstream.requests).toHaveLength(before + 5);
  expect((await say()).status).toBe(200);
});

test("the log names each failed attempt, and never a text, a key or the provider's words", async () => {
  const logged = stack.child.lines.filter((line) => line.startsWith("{"));
  expect(logged.filter((line) => line.includes('"attempt failed"')).length).toBeGreaterThan(15);
  const log = logged.join("\n");
  for (const secret of [
    input,
    "marmalade",
    "Whisper.",
    stack.inferenceKey,
    stack.managementKey,
    "test-key",
  ]) {
    expect(log).not.toContain(secret);
  }
});

test("a client that takes nothing is cut, long before its time is over", { timeout: 30_000 }, async () => {
  upstream.next({ kind: "audio", totalBytes: 1e9, chunkBytes: 100_000 });
  const request = nextRequest();
  const response = await say();
  expect(await (await request).ended).toBe("closed_by_client");
  await expect(response.arrayBuffer()).rejects.toThrow("terminated");
});

describe("within tight limits of time", () => {
  const limits = {
    SPEECH_FIRST_BYTE_TIMEOUT_MS: "1000",
    SPEECH_IDLE_TIMEOUT_MS: "500",
    SPEECH_TIMEOUT_MS: "2500",
  };
  let tight: TestStandalone;

  beforeAll(async () => {
    tight = await startTestStandalone({ ...openAiEnv(upstream), ...limits });
  });

  afterAll(() => tight.close());

  const ask = () => speak(tight, tight.inferenceKey, hello);

  test.for<[string, SpeechBehaviour]>([
    ["headers", { kind: "audio", beforeHeaders: gate().wait }],
    ["audio", { kind: "audio", beforeChunk: gate().wait }],
  ])("a provider without %s is a time-out", async ([, behaviour]) => {
    upstream.next(behaviour);
    const request = nextRequest();
    const response = await ask();
    const attempt = { provider_name: "OpenAI", endpoint_id: endpointId, status: null, reason: "timed_out" };
    expect(await response.json()).toEqual({
      error: {
        code: 524,
        message: "Request timed out. Please try again later.",
        metadata: { reason: "timed_out", provider_name: "OpenAI", attempts: [attempt] },
      },
    });
    expect(response.status).toBe(524);
    expect(await (await request).ended).toBe("closed_by_client");
  });

  test("a provider that falls silent is left, and its client cut", async () => {
    upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    const request = nextRequest();
    const response = await ask();
    expect(response.status).toBe(200);
    await expect(response.arrayBuffer()).rejects.toThrow("terminated");
    expect(await (await request).ended).toBe("closed_by_client");
  });

  test("an answer without an end is cut", async () => {
    upstream.next({ kind: "audio", totalBytes: 1e9, chunkBytes: 480, intervalMs: 50 });
    const request = nextRequest();
    const response = await ask();
    await expect(response.arrayBuffer()).rejects.toThrow("terminated");
    expect(await (await request).ended).toBe("closed_by_client");
  });
});
