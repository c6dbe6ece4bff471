import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import type { AudioBehaviour } from "../../test/upstreams/openai/openai-behaviour.ts";
import { createAudioSource, firstBytes } from "../../test/upstreams/stand-in/audio-source.ts";
import { ProviderError, type SpeechAdapter, type SpeechAnswer, type SpeechCall } from "../contract.ts";
import { createSpeechAdapter } from "./speech.ts";

let upstream: OpenAiUpstream;
let http: OutboundHttp;
let adapter: SpeechAdapter;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  http = createOutboundHttp();
  adapter = createSpeechAdapter({ http, path: "/v1/audio/speech" });
});
afterAll(async () => {
  await http.close();
  await upstream.close();
});
afterEach(() => {
  upstream.requests.length = 0;
});

const rawCall: SpeechCall = {
  upstreamModel: "gpt-4o-mini-tts",
  input: "Read this aloud.",
  voice: "alloy",
  format: "pcm",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};
const eventCall: SpeechCall = { ...rawCall, settings: { stream: "sse" } };
const shapes: [string, SpeechCall][] = [
  ["audio", rawCall],
  ["events", eventCall],
];

function synthesize(call: SpeechCall, signal = new AbortController().signal): Promise<SpeechAnswer> {
  return adapter.synthesize(call, {
    signal,
    connection: { baseUrl: upstream.baseUrl, apiKey: "test-key" },
    onSent: () => undefined,
  });
}

/** Reads to the end or the failure: what came, and the error. */
async function read(answer: SpeechAnswer): Promise<{ bytes: Buffer; error: unknown }> {
  const chunks: Uint8Array[] = [];
  let error: unknown;
  try {
    for await (const chunk of answer.audio) chunks.push(chunk);
  } catch (thrown) {
    error = thrown;
  }
  return { bytes: Buffer.concat(chunks), error };
}

async function failure(call: SpeechCall): Promise<unknown> {
  try {
    return (await read(await synthesize(call))).error;
  } catch (thrown) {
    return thrown;
  }
}

const audio = (more: Partial<AudioBehaviour>): AudioBehaviour => ({ kind: "audio", ...more });

describe.for(shapes)("speech as %s", ([shape, call]) => {
  test.for(["mp3", "pcm"] as const)("gives the bytes of %s and what they are", async (format) => {
    upstream.next(audio({ totalBytes: 100_001, chunkBytes: 777 }));
    const answer = await synthesize({ ...call, format });
    expect(answer).toMatchObject({ format, sampleRateHz: 24_000, channels: 1 });
    const { bytes, error } = await read(answer);
    expect(error).toBeUndefined();
    expect(bytes.equals(firstBytes(createAudioSource(format), 100_001))).toBe(true);
    expect(upstream.requests[0]?.fate).toBe("finished");
  });

  test("sends what was asked, allowed options with it, and nothing else can replace ours", async () => {
    const options = { instructions: "Softly.", model: "x", voice: "x", stream_format: "x", input: "x" };
    await read(await synthesize({ ...call, speed: 1.5, options }));
    expect(upstream.requests[0]?.json).toEqual({
      model: "gpt-4o-mini-tts",
      input: "Read this aloud.",
      voice: "alloy",
      response_format: "pcm",
      speed: 1.5,
      instructions: "Softly.",
      ...(shape === "events" && { stream_format: "sse" }),
    });
    await read(await synthesize(call));
    expect(upstream.requests[1]?.json).not.toHaveProperty("speed");
  });

  test("passes each piece on before the upstream sends the next", async () => {
    const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>());
    upstream.next(audio({ totalBytes: 40, chunkBytes: 10, beforeChunk: (index) => gates[index]?.promise }));
    const answer = await synthesize(call);
    const chunks = answer.audio[Symbol.asyncIterator]();
    for (const gate of gates) {
      gate.resolve();
      expect((await chunks.next()).value).toHaveLength(10);
    }
    expect((await chunks.next()).done).toBe(true);
  });

  test.for<[string, Partial<AudioBehaviour>]>([
    ["by a closed connection", {}],
    ["by a reset connection", { cutWith: "reset" }],
    ["short of its length", { framing: "length" }],
  ])("throws after the bytes so far when it is cut %s", async ([, how]) => {
    const gate = Promise.withResolvers<void>();
    upstream.next(
      audio({
        chunkBytes: 1000,
        cutAfterBytes: 3000,
        beforeChunk: (index) => (index === 2 ? gate.promise : undefined),
        ...how,
      }),
    );
    const answer = await synthesize(call);
    const chunks = answer.audio[Symbol.asyncIterator]();
    let bytes = 0;
    while (bytes < 2000) bytes += (await chunks.next()).value?.length ?? 0;
    gate.resolve();
    const rest = (async () => {
      while (!(await chunks.next()).done);
    })();
    await expect(rest).rejects.toMatchObject({ name: "ProviderError", kind: "network" });
    expect(answer.report()?.tokens).toBeUndefined();
  });

  test("is ended at the upstream by return(), also while a read waits", async () => {
    upstream.next(audio({ stallAfterBytes: 5000 }));
    const answer = await synthesize(call);
    const chunks = answer.audio[Symbol.asyncIterator]();
    for (let bytes = 0; bytes < 5000; ) bytes += (await chunks.next()).value?.length ?? 0;
    const waiting = chunks.next();
    const left = chunks.return?.();
    expect(await upstream.requests[0]?.ended).toBe("closed_by_client");
    expect((await waiting).done).toBe(true);
    expect((await left)?.done).toBe(true);
  });

  test("is ended at the upstream when the audio is left unread", async () => {
    upstream.next(audio({ stallAfterBytes: 5000 }));
    const answer = await synthesize(call);
    await answer.audio[Symbol.asyncIterator]().return?.();
    expect(await upstream.requests[0]?.ended).toBe("closed_by_client");
  });

  test("ends with its signal: waiting for headers, waiting for audio", async () => {
    upstream.next(audio({ beforeHeaders: () => new Promise(() => undefined) }));
    const early = new AbortController();
    const answer = synthesize(call, early.signal);
    const request = await upstream.received(1);
    early.abort(new ProviderError("timeout", "no first output in time"));
    await expect(answer).rejects.toThrow("no first output in time");
    expect(await request.ended).toBe("closed_by_client");

    upstream.next(audio({ stallAfterBytes: 1000 }));
    const late = new AbortController();
    const chunks = (await synthesize(call, late.signal)).audio[Symbol.asyncIterator]();
    await chunks.next();
    const waiting = chunks.next();
    late.abort();
    await expect(waiting).rejects.toMatchObject({ kind: "timeout" });
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
  });

  test("keeps to the pace of its reader", async () => {
    const totalBytes = 32 * 1024 * 1024;
    upstream.next(audio({ totalBytes, chunkBytes: 16 * 1024 }));
    const answer = await synthesize(call);
    const chunks = answer.audio[Symbol.asyncIterator]();
    let bytes = (await chunks.next()).value?.length ?? 0;
    let last = -1;
    await vi.waitFor(
      () => {
        const before = last;
        last = upstream.requests[0]?.sentBytes ?? 0;
        expect(last).toBe(before);
      },
      { interval: 300, timeout: 10_000 },
    );
    // What has gone lies in the kernel's socket buffers; read without back-pressure it would be all.
    expect(last).toBeLessThan(totalBytes / 2);
    for (;;) {
      const next = await chunks.next();
      if (next.done) break;
      bytes += next.value.length;
    }
    expect(bytes).toBe(totalBytes);
  });

  test.for([
    ["JSON", "application/json", '{"audio":""}'],
    ["a page", "text/html; charset=utf-8", "<html></html>"],
    ["nothing", shape === "events" ? "text/event-stream" : "audio/pcm", ""],
    ["another kind of audio", "audio/wav", "RIFF"],
    ["another kind of answer", "image/png", "x"],
  ])("does not take %s for speech", async ([, contentType = "", body = ""]) => {
    upstream.next({ kind: "plain", status: 200, headers: { "content-type": contentType }, body });
    const isCut = shape === "events" && body === "";
    expect(await failure(call)).toMatchObject({ kind: isCut ? "network" : "bad_answer" });
  });

  test("ends an answer that it does not take", async () => {
    upstream.next(audio({ contentType: "text/html", stallAfterBytes: 1000 }));
    expect(await failure(call)).toMatchObject({ kind: "bad_answer" });
    expect(await upstream.requests[0]?.ended).toBe("closed_by_client");
  });

  test("does not take a redirect or another success for speech", async () => {
    for (const status of [201, 204, 302]) {
      upstream.next({ kind: "plain", status, headers: { location: "/v1/audio/speech" }, body: "" });
      expect(await failure(call)).toMatchObject({ kind: "bad_answer", status });
    }
    expect(upstream.requests).toHaveLength(3);
  });
});

describe("speech as audio", () => {
  test.for([
    ["pcm", "audio/pcm"],
    ["pcm", "audio/L16;rate=24000"],
    ["pcm", "application/octet-stream"],
    ["mp3", "audio/mpeg"],
    ["mp3", "audio/mp3"],
    ["mp3", ""],
  ] as const)("takes %s that calls itself '%s'", async ([format, contentType]) => {
    const headers: Record<string, string> = contentType === "" ? {} : { "content-type": contentType };
    upstream.next({ kind: "plain", status: 200, headers, body: "xx" });
    expect((await read(await synthesize({ ...rawCall, format }))).bytes.toString()).toBe("xx");
  });

  test("has no usage, and other sample rates where the endpoint has them", async () => {
    const other = createSpeechAdapter({ http, path: "/v1/audio/speech" });
    const connection = { baseUrl: upstream.baseUrl, apiKey: "test-key" };
    const answer = await other.synthesize(
      { ...rawCall, sampleRateHz: 22_050 },
      {
        signal: new AbortController().signal,
        connection,
        onSent: () => undefined,
      },
    );
    expect(answer.sampleRateHz).toBe(22_050);
    await read(answer);
    expect(answer.report()?.tokens).toBeUndefined();
  });
});

describe("speech as events", () => {
  const events = (...data: string[]) => ({
    kind: "plain" as const,
    status: 200,
    headers: { "content-type": "text/event-stream" },
    body: data.map((line) => `data: ${line}\n\n`).join(""),
  });
  const delta = '{"type":"speech.audio.delta","audio":"QUI="}';
  const done = '{"type":"speech.audio.done"}';

  test("reports the tokens once the audio has ended", async () => {
    upstream.next(audio({ usage: { input_tokens: 7, output_tokens: 90, total_tokens: 97 } }));
    const answer = await synthesize(eventCall);
    expect(answer.report()?.tokens).toBeUndefined();
    await read(answer);
    expect(answer.report()?.tokens).toEqual({ prompt: 7, completion: 90, audioCompletion: 90 });
  });

  test("uses the connection again after the last event", async () => {
    for (const _ of [1, 2, 3]) await read(await synthesize(eventCall));
    expect(upstream.requests.map(({ fate }) => fate)).toEqual(["finished", "finished", "finished"]);
    expect(new Set(upstream.requests.map(({ connection }) => connection)).size).toBeLessThan(3);
  });

  test("waits a little for the end after the last event, so that the connection can be used again", async () => {
    const gate = Promise.withResolvers<void>();
    const never = new Promise<void>(() => undefined);
    upstream.next(audio({ beforeEnd: () => gate.promise }), audio({ beforeEnd: () => never }));
    const answer = await synthesize(eventCall);
    const reading = read(answer);
    await vi.waitFor(() => expect(answer.report()?.tokens).toBeDefined());
    gate.resolve();
    expect((await reading).error).toBeUndefined();
    expect(upstream.requests[0]?.fate).toBe("finished");

    expect((await read(await synthesize(eventCall))).error).toBeUndefined();
    expect(await upstream.requests[1]?.ended).toBe("closed_by_client");
  });

  test("sends instructions where there are any, also in the place of the same option", async () => {
    const options = { instructions: "Loudly." };
    await read(await synthesize({ ...eventCall, options }));
    await read(await synthesize({ ...eventCall, options, instructions: "Softly." }));
    await read(await synthesize(eventCall));
    const sent = upstream.requests.map(({ json }) => (json as { instructions?: string }).instructions);
    expect(sent).toEqual(["Loudly.", "Softly.", undefined]);
  });

  test("ignores comments, unknown events and the bare end mark; corrects nothing that is reported", async () => {
    const usage = '{"type":"speech.audio.done","usage":{"input_tokens":-1,"output_tokens":"9"}}';
    upstream.next(
      events('{"type":"ping"}', delta, '{"type":"speech.audio.delta","audio":""}', usage, "[DONE]"),
    );
    const answer = await synthesize(eventCall);
    expect(await read(answer)).toEqual({ bytes: Buffer.from("AB"), error: undefined });
    expect(answer.report()?.tokens).toEqual({
      prompt: -1,
      completion: Number.NaN,
      audioCompletion: Number.NaN,
    });
  });

  test.for([
    ["no last event", [delta], "network"],
    ["no audio", [done], "bad_answer"],
    ["an event that is not JSON", [delta, "{", done], "bad_answer"],
    ["an event that is no object", [delta, "7", done], "bad_answer"],
    ["audio that is not base64", ['{"type":"speech.audio.delta","audio":"Q!!!"}', done], "bad_answer"],
    ["audio that is cut base64", ['{"type":"speech.audio.delta","audio":"QUI"}', delta, "x"], "bad_answer"],
    ["audio that is no text", ['{"type":"speech.audio.delta","audio":7}', done], "bad_answer"],
    ["an error", [delta, '{"error":{"code":"rate_limit_exceeded","message":"m"}}', done], "overloaded"],
  ] as const)("throws on %s", async ([, data, kind]) => {
    upstream.next(events(...data));
    expect(await failure(eventCall)).toMatchObject({ name: "ProviderError", kind });
  });

  test("throws an error event after the audio before it", async () => {
    upstream.next(audio({ totalBytes: 50_000, errorAfterBytes: 20_000 }));
    const { bytes, error } = await read(await synthesize(eventCall));
    expect(bytes).toHaveLength(20_000);
    expect(error).toMatchObject({ kind: "upstream", cause: "server_error: It broke." });
  });

  test("throws when the stream ends cleanly but without its last event", async () => {
    upstream.next(audio({ omitDone: true }));
    expect(await failure(eventCall)).toMatchObject({ kind: "network" });
  });
});
