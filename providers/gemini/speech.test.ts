import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import {
  type GeminiBehaviour,
  type GeminiUpstream,
  geminiAudio,
  startGemini,
} from "../../test/upstreams/gemini.ts";
import { attempt } from "../adapter.suite.ts";
import { ProviderError, type ProviderErrorKind, type SpeechAdapter, type SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "../provider.suite.ts";
import { gemini } from "./index.ts";

const apiKey = "the-right-key";
const call: SpeechCall = {
  upstreamModel: "gemini-3.8-flash-tts",
  input: "A sentence nobody else may read.",
  voice: "Kore",
  format: "pcm",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

interface Setup extends SpeechProviderSetup {
  readonly upstream: GeminiUpstream;
}

async function createSetup(usual: GeminiBehaviour = { totalBytes: 40_000, pieceBytes: 2000, intervalMs: 5 }) {
  const long = { totalBytes: 32 * 1024 * 1024, pieceBytes: 64 * 1024 };
  const upstream = await startGemini(apiKey, (text) => (text.includes("at length") ? long : usual));
  const http = createOutboundHttp();
  const { speech: adapter } = await gemini.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no speech");
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    pace: {
      longCall: { ...call, input: "at length" },
      producedBytes: () => upstream.requests.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
      // The kernel's buffers of a connection over the loopback hold some 4 MiB, up to 10 by its usual limits.
      maxAheadBytes: 16 * 1024 * 1024,
    },
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

const errorBody = (code: number, status: string) => ({
  error: { code, status, message: `${apiKey} may not say: ${call.input}` },
});
const failure = (name: string, kind: ProviderErrorKind, behaviour: GeminiBehaviour, status?: number) => ({
  name,
  kind,
  ...(status !== undefined && { status }),
  provoke({ upstream }: Setup) {
    upstream.next(behaviour);
    return undefined;
  },
});
const refused = (kind: ProviderErrorKind, code: number, status: string) =>
  failure(`${code} ${status}`, kind, { error: { status: code, body: errorBody(code, status) } }, code);

const failures: readonly SpeechFailure<Setup>[] = [
  refused("invalid_request", 400, "INVALID_ARGUMENT"),
  refused("credentials", 400, "FAILED_PRECONDITION"),
  refused("credentials", 403, "PERMISSION_DENIED"),
  refused("overloaded", 429, "RESOURCE_EXHAUSTED"),
  refused("upstream", 500, "INTERNAL"),
  refused("overloaded", 503, "UNAVAILABLE"),
  refused("timeout", 504, "DEADLINE_EXCEEDED"),
  failure("a prompt that is blocked", "content_policy", { blockReason: "PROHIBITED_CONTENT" }, 200),
  failure("an end for safety", "content_policy", { totalBytes: 0, finishReason: "SAFETY" }, 200),
  failure("an end for another reason", "upstream", { finishReason: "OTHER" }, 200),
  failure("an end at the most tokens", "upstream", { finishReason: "MAX_TOKENS" }, 200),
  failure("an end without a reason", "network", { finishReason: null }),
  failure("no audio", "bad_answer", { totalBytes: 0 }, 200),
  failure("mp3", "bad_answer", { mimeType: "audio/mpeg" }, 200),
  {
    name: "a wrong key",
    kind: "credentials",
    status: 400,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "wrong" } }),
  },
  {
    name: "an unknown model",
    kind: "invalid_request",
    status: 404,
    provoke: () => ({ call: { ...call, upstreamModel: "no-such-model" } }),
  },
];

describeSpeechProvider("Gemini", () => createSetup(), failures);

describe("Gemini's speech", () => {
  let given: Awaited<ReturnType<typeof createSetup>>;
  let adapter: SpeechAdapter;
  beforeAll(async () => {
    given = await createSetup({});
    ({ adapter } = given);
  });
  afterAll(async () => await given.close());
  const ask = async (behaviour: GeminiBehaviour = {}, changes: Partial<SpeechCall> = {}) => {
    given.upstream.next(behaviour);
    return await adapter.synthesize({ ...call, ...changes }, attempt(given.connection).context);
  };
  const sent = () => given.upstream.requests.at(-1)?.json;

  test("is asked for in the vendor's words", async () => {
    await Array.fromAsync((await ask({}, { instructions: "Whisper:", options: { temperature: 0.5 } })).audio);
    expect(sent()).toEqual({
      contents: [{ role: "user", parts: [{ text: `Whisper: ${call.input}` }] }],
      generationConfig: {
        temperature: 0.5,
        responseModalities: ["AUDIO"],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Kore" } } },
      },
    });
    expect(JSON.stringify(given.upstream.requests.at(-1)?.path)).not.toContain(apiKey);
  });

  test("can't be asked for something else by options", async () => {
    const options = { responseModalities: ["TEXT"], speechConfig: { voiceConfig: {} } };
    await Array.fromAsync((await ask({}, { options })).audio);
    expect(sent()).toMatchObject({
      generationConfig: {
        responseModalities: ["AUDIO"],
        speechConfig: { voiceConfig: { prebuiltVoiceConfig: { voiceName: "Kore" } } },
      },
    });
  });

  test("comes as it is, little-endian, with the rate that it names and the tokens it used", async () => {
    const answer = await ask({ mimeType: "audio/L16;codec=pcm;rate=16000" });
    expect(answer).toMatchObject({ format: "pcm", sampleRateHz: 16_000, channels: 1 });
    expect(Buffer.concat(await Array.fromAsync(answer.audio)).equals(geminiAudio(9600))).toBe(true);
    expect(answer.report()?.tokens).toMatchObject({ prompt: 8, completion: 120, audioCompletion: 120 });
  });

  test.each<[string, object | null, unknown]>([
    ["none", null, undefined],
    ["a part of it", { promptTokenCount: 8 }, { prompt: 8, completion: 0 }],
    ["what are no numbers", { promptTokenCount: "8" }, { prompt: Number.NaN }],
  ])("hands its report on as it is: %s", async (_, usage, tokens) => {
    const answer = await ask({ usage });
    await Array.fromAsync(answer.audio);
    if (tokens === undefined) expect(answer.report()).toBeUndefined();
    else expect(answer.report()?.tokens).toMatchObject(tokens as object);
  });

  test("cut at any byte is never whole", async () => {
    const small = { totalBytes: 48, pieceBytes: 24 };
    await Array.fromAsync((await ask(small)).audio);
    const length = given.upstream.requests.at(-1)?.sentBytes ?? 0;
    expect(length).toBeGreaterThan(300);
    for (let cutAfterBytes = 1; cutAfterBytes < length; cutAfterBytes++) {
      const read = ask({ ...small, cutAfterBytes }).then(({ audio }) => Array.fromAsync(audio));
      await expect(read, `cut after ${cutAfterBytes}`).rejects.toBeInstanceOf(ProviderError);
    }
  });
});
