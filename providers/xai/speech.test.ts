import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp, type OutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import type { AudioBehaviour } from "../../test/upstreams/openai-behaviour.ts";
import {
  type GrokBehaviour,
  type GrokUpstream,
  grokCodes,
  startGrokUpstream,
} from "../../test/upstreams/xai.ts";
import { attempt } from "../adapter.suite.ts";
import type { ProviderErrorKind, SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "../provider.suite.ts";
import { xai } from "./index.ts";

const apiKey = "xai-the-right-one";
const call: SpeechCall = {
  upstreamModel: "tts",
  input: "A sentence nobody else may read.",
  voice: "eve",
  format: "mp3",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

interface Setup extends SpeechProviderSetup {
  readonly upstream: GrokUpstream;
}

/** Slow enough for what looks at an answer amid its audio, and more than buffers hold for the long text. */
const speak = (text: string): AudioBehaviour =>
  text === "long"
    ? { kind: "audio", totalBytes: 32 * 1024 * 1024, chunkBytes: 64 * 1024 }
    : { kind: "audio", totalBytes: 40_000, chunkBytes: 2_000, intervalMs: 5 };

async function createSetup(): Promise<Setup> {
  const upstream = await startGrokUpstream({ apiKey, speak });
  const http = createOutboundHttp();
  const { speech: adapter } = await xai.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no speech");
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    formats: ["mp3", "pcm"],
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
    pace: {
      longCall: { ...call, input: "long" },
      producedBytes: () => upstream.requests.reduce((sum, { sentBytes }) => sum + sentBytes, 0),
      // As in the suite of OpenAI's dialect: what the kernel's buffers hold of a connection over the loopback.
      maxAheadBytes: 16 * 1024 * 1024,
    },
    close: async () => {
      await http.close();
      await upstream.close();
    },
  };
}

const said = `${apiKey} may not say: ${call.input}`;

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: GrokBehaviour,
  status?: number,
): SpeechFailure<Setup> {
  const provoke = ({ upstream }: Setup) => {
    upstream.next(behaviour);
    return undefined;
  };
  return { name, kind, ...(status !== undefined && { status }), provoke };
}

const refused = (status: number, body: unknown): GrokBehaviour => ({ kind: "refusal", status, body });
const plain = (contentType: string, body: string): GrokBehaviour => ({
  ...{ kind: "refusal", status: 200, body },
  headers: { "content-type": contentType },
});

describeSpeechProvider("xAI's speech", createSetup, [
  failure("a refusal", "invalid_request", refused(400, { error: said }), 400),
  failure(
    "no credits",
    "credentials",
    refused(429, {
      code: grokCodes.exhausted,
      error: "Your team has either used all available credits or reached its monthly spending limit.",
    }),
    429,
  ),
  failure("a limit", "overloaded", refused(429, { code: grokCodes.exhausted, error: said }), 429),
  failure("no permission", "credentials", refused(403, { code: grokCodes.permission, error: said }), 403),
  failure("a page for an error", "upstream", refused(502, "<html></html>"), 502),
  failure("high load", "overloaded", refused(503, { code: grokCodes.unavailable, error: said }), 503),
  failure("JSON", "bad_answer", plain("application/json", "{}"), 200),
  failure("nothing", "bad_answer", plain("audio/mpeg", ""), 200),
  failure("another format", "bad_answer", plain("audio/wav", "RIFF"), 200),
  failure("cut before the first byte", "network", { kind: "audio", cutAfterBytes: 0 }),
  {
    name: "a wrong key, with the status of a wrong request",
    kind: "credentials",
    status: 400,
    provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "xai-wrong" } }),
  },
  {
    name: "a voice that is not there",
    kind: "invalid_request",
    status: 400,
    provoke: ({ call: right }) => ({ call: { ...right, voice: "nobody" } }),
  },
]);

describe("the request", () => {
  let upstream: GrokUpstream;
  let http: OutboundHttp;
  beforeAll(async () => {
    upstream = await startGrokUpstream({ apiKey });
    http = createOutboundHttp();
  });
  afterAll(async () => {
    await http.close();
    await upstream.close();
  });

  async function bodyOf(changes: Partial<SpeechCall>): Promise<unknown> {
    const { speech } = await xai.create({ http, fetchResult: noResults });
    const { context } = attempt({ baseUrl: `${upstream.baseUrl}/v1`, apiKey });
    const answer = await speech?.synthesize({ ...call, ...changes }, context);
    for await (const chunk of answer?.audio ?? []) expect(chunk.length).toBeGreaterThan(0);
    expect(answer?.report()).toBeUndefined();
    return upstream.requests.at(-1)?.json;
  }

  const usual = {
    text: call.input,
    voice_id: "eve",
    language: "auto",
    output_format: { codec: "mp3", sample_rate: 24_000 },
  };

  test("says what is asked for, and a language in any case", async () => {
    expect(await bodyOf({})).toEqual(usual);
    expect(await bodyOf({ speed: 1.5, format: "pcm", options: { language: "de" } })).toEqual({
      ...usual,
      speed: 1.5,
      language: "de",
      output_format: { codec: "pcm", sample_rate: 24_000 },
    });
  });

  test("is not changed by options that name what is ours", async () => {
    const options = {
      text: "More.",
      voice_id: "rex",
      output_format: { codec: "wav" },
      speed: 0.7,
      with_timestamps: true,
    };
    expect(await bodyOf({ options })).toEqual(usual);
  });

  test("cut at any byte, its answer is not whole", async () => {
    const { speech } = await xai.create({ http, fetchResult: noResults });
    for (const framing of ["chunked", "length"] as const) {
      for (let bytes = 0; bytes < 64; bytes++) {
        upstream.next({ kind: "audio", totalBytes: 64, cutAfterBytes: bytes, framing });
        const { context } = attempt({ baseUrl: upstream.baseUrl, apiKey });
        const audio = speech?.synthesize(call, context).then((answer) => Array.fromAsync(answer.audio));
        await expect(audio).rejects.toMatchObject({ kind: "network" });
      }
    }
  });
});
