import OpenAI, { APIUserAbortError } from "openai";
import { beforeAll, describe, expect, test } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { mp3Frames } from "../support/mp3-frames.ts";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import { bytesOf } from "../support/processes/standalone.ts";
import type { OpenAiUpstream } from "../upstreams/openai/openai.ts";
import { createAudioSource, firstBytes } from "../upstreams/stand-in/audio-source.ts";
import { openAiFailure } from "./openai-failure.ts";

const local = { model: "local/flite", voice: "slt", input: "Hello." } as const;
const remote = { model: "openai/tts-1", voice: "alloy", input: "Hello." } as const;

let upstream: OpenAiUpstream;
let stack: SharedStandalone;
let client: OpenAI;

beforeAll(async () => {
  stack = await openSharedStandalone();
  ({ upstream } = stack);
  client = clientWith(stack.inferenceKey);
});

function clientWith(apiKey: string, maxRetries = 0): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${stack.baseUrl}/api/v1`, maxRetries });
}

describe("OpenAI's client at the gateway", () => {
  test("speaks with the built-in engine", async () => {
    const response = await client.audio.speech.create(local);
    expect(response.headers.get("content-type")).toBe("audio/mpeg");
    const frames = mp3Frames(await bytesOf(response));
    expect(frames.length).toBeGreaterThan(10);
    expect(frames[0]).toMatchObject({ sampleRateHz: 24_000, channels: 1 });
  });

  test.for(["mp3", "pcm"] as const)("gets a provider's %s", async (format) => {
    const response = await client.audio.speech.create({ ...remote, response_format: format, speed: 1.25 });
    const audio = await bytesOf(response);
    expect(audio.equals(firstBytes(createAudioSource(format), audio.length))).toBe(true);
    expect(audio.length).toBe(20 * 4096);
    expect(upstream.requests.at(-1)?.json).toMatchObject({ response_format: format, speed: 1.25 });
  });

  test("reads a stream while it is being made", async () => {
    const rest = Promise.withResolvers<void>();
    upstream.next({
      kind: "audio",
      totalBytes: 12_288,
      beforeChunk: (index) => (index === 0 ? undefined : rest.promise),
    });
    const response = await client.audio.speech.create(remote);
    let length = 0;
    for await (const chunk of response.body ?? []) {
      length += chunk.length;
      rest.resolve();
    }
    expect(length).toBe(12_288);
  });

  test("may send what this interface does not know", async () => {
    const unknown = { instructions: "Whisper.", stream_format: "sse" } as const;
    const response = await client.audio.speech.create({ ...remote, ...unknown });
    expect(response.headers.get("content-type")).toBe("audio/mpeg");
    await bytesOf(response);
    expect(upstream.requests.at(-1)?.json).toEqual({ ...remote, model: "tts-1", response_format: "mp3" });
  });

  test.for([
    ["no text", { input: "" }, OpenAI.BadRequestError, 400, "invalid_body"],
    ["another format", { response_format: "flac" }, OpenAI.BadRequestError, 400, "invalid_body"],
    ["an unknown voice", { voice: "nobody" }, OpenAI.BadRequestError, 400, "unsupported_parameter"],
    ["an unknown model", { model: "tts-1" }, OpenAI.NotFoundError, 404, "model_unknown"],
    ["400", { input: "[[status=400]]" }, OpenAI.InternalServerError, 502, "provider_failed"],
    ["429", { input: "[[status=429]]" }, OpenAI.InternalServerError, 529, "provider_overloaded"],
    ["500", { input: "[[status=500]]" }, OpenAI.InternalServerError, 502, "provider_failed"],
  ] as const)("throws its own errors: %s", async ([, change, type, status, reason]) => {
    const request = { ...remote, ...change } as OpenAI.Audio.SpeechCreateParams;
    const error = await openAiFailure(client.audio.speech.create(request));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ status, code: status, error: { code: status, metadata: { reason } } });
    expect(error.message).toMatch(new RegExp(`^${status} \\w`));
  });

  test("throws its own errors: keys and routes", async () => {
    const stranger = await openAiFailure(clientWith(generateApiKey()).audio.speech.create(local));
    expect(stranger).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(stranger.message).toBe("401 Missing Authentication header");
    const manager = await openAiFailure(clientWith(stack.managementKey).audio.speech.create(local));
    expect(manager).toBeInstanceOf(OpenAI.AuthenticationError);
    const elsewhere = await openAiFailure(client.get("/no/such/route"));
    expect(elsewhere).toBeInstanceOf(OpenAI.NotFoundError);
    expect(elsewhere.requestID).toMatch(/^req-/);
  });

  test("tries again after an overload, as long after as it is told", async () => {
    const before = upstream.requests.length;
    upstream.next({ kind: "error", status: 429, headers: { "retry-after": "1" } });
    const response = await clientWith(stack.inferenceKey, 1).audio.speech.create(remote);
    expect(await bytesOf(response)).toHaveLength(20 * 4096);
    expect(upstream.requests).toHaveLength(before + 2);
  });

  test("never takes half an answer for a whole one", async () => {
    upstream.next({ kind: "audio", cutAfterBytes: 8192 });
    const response = await client.audio.speech.create(remote);
    await expect(response.arrayBuffer()).rejects.toThrow("terminated");
  });

  test("leaves by its signal, and the provider stops once there is audio to be charged for", async () => {
    const gate = Promise.withResolvers<void>();
    upstream.next({ kind: "audio", beforeHeaders: () => gate.promise, stallAfterBytes: 8192 });
    const request = upstream.received(upstream.requests.length + 1);
    const leaving = new AbortController();
    const call = openAiFailure(client.audio.speech.create(remote, { signal: leaving.signal }));
    const { ended } = await request;
    leaving.abort();
    expect(await call).toBeInstanceOf(APIUserAbortError);
    gate.resolve();
    expect(await ended).toBe("closed_by_client");
  });
});
