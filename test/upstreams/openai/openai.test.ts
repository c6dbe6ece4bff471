import OpenAI, { APIError, APIUserAbortError } from "openai";
import { Stream } from "openai/core/streaming";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startChild } from "../../support/processes/child.ts";
import { createAudioSource, firstBytes } from "../stand-in/audio-source.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "./openai.ts";

let upstream: OpenAiUpstream;
let client: OpenAI;

function createClient(baseUrl: string, apiKey = "test-key"): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${baseUrl}/v1`, maxRetries: 0 });
}

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  client = createClient(upstream.baseUrl);
});
afterAll(async () => await upstream.close());
afterEach(() => {
  upstream.requests.length = 0;
});

const body = { model: "gpt-4o-mini-tts", input: "Hello.", voice: "alloy" } as const;

async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}

async function errorOf(speech: PromiseLike<Response>): Promise<APIError> {
  try {
    await (await speech).arrayBuffer();
  } catch (error) {
    if (error instanceof APIError) return error;
    throw error;
  }
  throw new Error("no error");
}

describe("OpenAI's own client against the stand-in", () => {
  test.for([
    ["mp3", "audio/mpeg"],
    ["pcm", "audio/pcm"],
  ] as const)("gets %s", async ([format, contentType]) => {
    upstream.next({ kind: "audio", totalBytes: 1_500_001, chunkBytes: 60_000 });
    const response = await client.audio.speech.create({ ...body, response_format: format });
    expect(response.headers.get("content-type")).toBe(contentType);
    expect(response.headers.get("transfer-encoding")).toBe("chunked");
    expect((await bytesOf(response)).equals(firstBytes(createAudioSource(format), 1_500_001))).toBe(true);
    expect(upstream.requests).toMatchObject([
      {
        method: "POST",
        path: "/v1/audio/speech",
        json: { ...body, response_format: format },
        fate: "finished",
        sentBytes: 1_500_001,
      },
    ]);
  });

  test("gets events that its own decoder reads", async () => {
    upstream.next({ kind: "audio", totalBytes: 9_000, chunkBytes: 4_000 });
    const response = await client.audio.speech.create({ ...body, stream_format: "sse" });
    const stream = Stream.fromSSEResponse<Record<string, unknown>>(response, new AbortController());
    const events = await Array.fromAsync(stream);
    expect(events.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 3 }, () => "speech.audio.delta"),
      "speech.audio.done",
    ]);
    const audio = Buffer.concat(events.map(({ audio }) => Buffer.from(String(audio ?? ""), "base64")));
    expect(audio.equals(firstBytes(createAudioSource("mp3"), 9_000))).toBe(true);
    expect(events.at(-1)?.usage).toEqual({ input_tokens: 14, output_tokens: 101, total_tokens: 115 });
  });

  test.for([
    [400, OpenAI.BadRequestError, null],
    [401, OpenAI.AuthenticationError, "invalid_api_key"],
    [429, OpenAI.RateLimitError, "rate_limit_exceeded"],
    [500, OpenAI.InternalServerError, null],
    [503, OpenAI.InternalServerError, null],
  ] as const)("takes %i for what it is", async ([status, type, code]) => {
    upstream.next({ kind: "error", status, headers: { "retry-after": "2" } });
    const error = await errorOf(client.audio.speech.create(body));
    expect(error).toBeInstanceOf(type);
    expect(error).toMatchObject({ status, code });
    expect(error.headers?.get("retry-after")).toBe("2");
  });

  test.for<[string, Record<string, unknown>, number, string | null]>([
    ["no such model", { model: "tts-9" }, 404, "model_not_found"],
    ["no such voice", { voice: "nobody" }, 400, "invalid_value"],
    ["no such format", { response_format: "mp4" }, 400, "invalid_value"],
    ["too fast", { speed: 5 }, 400, "invalid_value"],
    ["empty input", { input: "" }, 400, "string_too_short"],
    ["no input", { input: undefined }, 400, "missing_required_parameter"],
    ["long input", { input: "é".repeat(4_097) }, 400, "string_too_long"],
    ["events of a model without", { model: "tts-1", stream_format: "sse" }, 400, "invalid_value"],
  ])("is refused: %s", async ([, change, status, code]) => {
    const error = await errorOf(client.audio.speech.create({ ...body, ...change }));
    expect(error).toMatchObject({ status, code, type: "invalid_request_error" });
  });

  test("is refused: wrong key, wrong path; the longest input and a voice by id are fine", async () => {
    const stranger = createClient(upstream.baseUrl, "sk-wrong");
    expect(await errorOf(stranger.audio.speech.create(body))).toMatchObject({ status: 401 });
    await expect(client.models.list()).rejects.toMatchObject({ status: 404 });
    const fine = { ...body, input: "é".repeat(4_096), voice: { id: "voice_1" } };
    expect((await client.audio.speech.create(fine)).status).toBe(200);
  });

  test.for([
    [{ cutAfterBytes: 5_000 }, "cut"],
    [{ cutAfterBytes: 5_000, framing: "length" }, "cut"],
    [{ cutAfterBytes: 5_000, cutWith: "reset" }, "cut"],
  ] as const)("fails on a cut answer: %o", async ([how, fate]) => {
    upstream.next({ kind: "audio", ...how });
    const response = await client.audio.speech.create(body);
    await expect(response.arrayBuffer()).rejects.toThrow();
    expect(upstream.requests).toMatchObject([{ fate, sentBytes: 5_000 }]);
  });

  test("leaves a mark when it gives up, before or amid the answer", async () => {
    const early = new AbortController();
    upstream.next({ kind: "audio", beforeHeaders: () => new Promise(() => undefined) });
    const waiting = errorOf(client.audio.speech.create(body, { signal: early.signal }));
    const request = await upstream.received(1);
    early.abort();
    expect(await waiting).toBeInstanceOf(APIUserAbortError);
    expect(await request.ended).toBe("closed_by_client");

    upstream.next({ kind: "audio", stallAfterBytes: 3_000 });
    const response = await client.audio.speech.create(body);
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
    expect(upstream.requests[1]?.sentBytes).toBe(3_000);
  });

  test("meets what the text it sends asks for", async () => {
    const long = await client.audio.speech.create({
      ...body,
      input: "Hi [[audio=12345 chunk=1000 framing=length]]",
    });
    expect(long.headers.get("content-length")).toBe("12345");
    expect(await bytesOf(long)).toHaveLength(12_345);
    const busy = await errorOf(
      client.audio.speech.create({ ...body, input: "[[status=429 retry-after=7]]" }),
    );
    expect(busy.headers?.get("retry-after")).toBe("7");
  });

  test("finds it as a process of its own", async () => {
    const child = startChild("test/upstreams/openai/openai-main.ts", {
      args: ["--audio", "5000", "--interval", "1"],
    });
    try {
      const baseUrl = await child.line((line) => line.startsWith("http://"));
      expect(await bytesOf(await createClient(baseUrl).audio.speech.create(body))).toHaveLength(5_000);
    } finally {
      expect(await child.stop()).toBe(0);
    }
  });
});
