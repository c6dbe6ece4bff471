import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createOutboundHttp } from "../lib/http/outbound-fetch.ts";
import { noResults } from "../test/fakes/no-results.ts";
import type { AudioBehaviour, SpeechBehaviour } from "../test/upstreams/openai/openai-behaviour.ts";
import type { SpeechUpstream, SpeechUpstreamOptions } from "../test/upstreams/stand-in/raw-speech.ts";
import { attempt } from "./adapter.suite.ts";
import {
  type AudioFormat,
  type NativeAudioFormat,
  ProviderError,
  type ProviderErrorKind,
  type ProviderManifest,
  type SpeechCall,
  type UpstreamReport,
} from "./contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "./provider.suite.ts";

/** A provider of speech, the stand-in for its upstream, and one of its calls that the stand-in takes. */
export interface SpeechVendor<U extends SpeechUpstream = SpeechUpstream> {
  readonly manifest: ProviderManifest;
  startUpstream(options: SpeechUpstreamOptions): Promise<U>;
  readonly call: Pick<SpeechCall, "upstreamModel" | "voice"> & Partial<SpeechCall>;
  /** Formats that the upstream makes itself. */
  readonly formats: readonly AudioFormat[];
  /** Samples a second of its mp3 where that is not what was asked for. */
  readonly mp3RateHz?: number;
}

/** What the suites know of a provider of speech whose upstream is a stand-in. */
export interface SpeechVendorSetup<U extends SpeechUpstream = SpeechUpstream> extends SpeechProviderSetup {
  readonly upstream: U;
}

/** One of a vendor's real error bodies, with `message` where it puts its words, and what it must be taken for. */
export type VendorError = readonly [
  name: string,
  status: number,
  body: (message: string) => unknown,
  kind: ProviderErrorKind,
];

/** What there is to a request; headers besides these are no matter. */
export interface SentRequest {
  readonly path: string;
  readonly json: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

/** A vendor whose answer is the audio itself. */
export interface RawSpeechVendor extends SpeechVendor {
  readonly errors: readonly VendorError[];
  /** What the upstream is sent for a call that differs so from `call`. */
  readonly requests: readonly (readonly [call: Partial<SpeechCall>, sent: SentRequest])[];
  /** What the adapter reports of an answer, by the vendor's headers of it. */
  readonly reports: readonly (readonly [
    headers: Readonly<Record<string, string | undefined>>,
    report: UpstreamReport | undefined,
  ])[];
  /** Passed-through options that try to replace what is ours: the request must be the same as without them. */
  readonly hostileOptions: Readonly<Record<string, unknown>>;
}

const apiKey = "sk-the-right-one";
const input = "A sentence nobody else may read.";

/** What an upstream's error says in the suites, and no error of ours may: the key and the text of the call. */
export const secretWords = `${apiKey} may not say: ${input}`;

/** Starts the stand-in and makes the adapter. */
export async function createSpeechSetup<U extends SpeechUpstream>({
  manifest,
  startUpstream,
  call: given,
  formats,
}: SpeechVendor<U>) {
  const upstream = await startUpstream({
    apiKey,
    // Slow enough for what looks at an answer amid its audio, and more than buffers hold for the long text.
    behave: (spoken) =>
      spoken.input === "long"
        ? { kind: "audio", totalBytes: 32 * 1024 * 1024, chunkBytes: 64 * 1024 }
        : { kind: "audio", totalBytes: 40_000, chunkBytes: 2_000, intervalMs: 5 },
  });
  const http = createOutboundHttp();
  const { speech: adapter } = await manifest.create({ http, fetchResult: noResults });
  if (adapter === undefined) throw new Error("no speech");
  const [format = "mp3"] = formats;
  const call: SpeechCall = {
    input,
    format,
    sampleRateHz: 24_000,
    channels: 1,
    speed: 1,
    options: {},
    settings: {},
    ...given,
  };
  return {
    upstream,
    adapter,
    connection: { baseUrl: upstream.baseUrl, apiKey },
    call,
    formats,
    running: () => upstream.requests.filter(({ fate }) => fate === "open").length,
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
}

/** The acceptance suite of a vendor whose answer is the audio itself, with its errors and the edges of its bills. */
export function describeRawSpeech(
  name: string,
  vendor: RawSpeechVendor,
  failures: readonly SpeechFailure<SpeechVendorSetup>[] = [],
): void {
  const errors = vendor.errors.map(([error, status, body, kind]) =>
    speechFailure(`${status} ${error}`, kind, {
      kind: "plain",
      status,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body(secretWords)),
    }),
  );
  const all = [...wireFailures, wrongKey, ...errors, ...failures];
  describeSpeechProvider(name, () => createSpeechSetup(vendor), all);
  describeEdges(name, vendor);
}

const smallBytes = 24;

function describeEdges(name: string, vendor: RawSpeechVendor): void {
  describe(`${name} at the edges of its bills`, () => {
    let given: Awaited<ReturnType<typeof createSpeechSetup>>;
    beforeAll(async () => {
      given = await createSpeechSetup(vendor);
    });
    afterAll(async () => await given?.close());

    const speak = async (behaviour: Partial<AudioBehaviour>, more: Partial<SpeechCall> = {}) => {
      const { upstream, adapter, call, connection } = given;
      upstream.next({ kind: "audio", totalBytes: smallBytes, chunkBytes: 1, ...behaviour });
      const answer = await adapter.synthesize({ ...call, ...more }, attempt(connection).context);
      const { sampleRateHz } = answer;
      return { chunks: await Array.fromAsync(answer.audio), report: answer.report(), sampleRateHz };
    };
    const cases = vendor.formats.flatMap((format) =>
      (["chunked", "length"] as const).map((framing) => ({ format, framing })),
    );

    test.for(cases)("an answer cut at any byte never looks whole: %o", async ({ format, framing }) => {
      for (let cutAfterBytes = 0; cutAfterBytes < smallBytes; cutAfterBytes += 1) {
        const cut = speak({ cutAfterBytes, framing }, { format });
        await expect(cut, String(cutAfterBytes)).rejects.toMatchObject({ kind: "network" });
      }
      const { chunks, sampleRateHz } = await speak({ framing }, { format });
      expect(Buffer.concat(chunks)).toHaveLength(smallBytes);
      const { mp3RateHz = given.call.sampleRateHz } = vendor;
      expect(sampleRateHz).toBe(format === "mp3" ? mp3RateHz : given.call.sampleRateHz);
    });

    test.for(vendor.requests)("sends what is asked: %o", async ([call, { headers, ...sent }]) => {
      await speak({}, call);
      const request = given.upstream.requests.at(-1);
      expect({ path: request?.path, json: request?.json }).toEqual(sent);
      expect(request?.headers).toMatchObject(headers);
    });

    test.for(vendor.reports)("headers %o are reported as %o", async ([headers, report]) => {
      expect((await speak({ headers })).report).toEqual(report);
    });

    test("options replace nothing that is ours", async () => {
      const { requests } = given.upstream;
      await speak({});
      const own = requests.at(-1);
      await speak({}, { options: vendor.hostileOptions });
      const { path, json, headers } = requests.at(-1) ?? {};
      expect({ path, json, headers }).toEqual({
        path: own?.path,
        json: own?.json,
        headers: own?.headers,
      });
    });
  });
}

const smallEvents: AudioBehaviour = { kind: "audio", totalBytes: 68, chunkBytes: 34 };

/** What a vendor bears whose audio comes in events: only what came to its last event is whole. */
export function testEventsEnd(
  given: () => Awaited<ReturnType<typeof createSpeechSetup>>,
  formats: readonly NativeAudioFormat[],
): void {
  const speak = async (format: NativeAudioFormat, behaviour: SpeechBehaviour) => {
    const { upstream, adapter, call, connection } = given();
    upstream.next(behaviour);
    const answer = await adapter.synthesize({ ...call, format }, attempt(connection).context);
    return Buffer.concat(await Array.fromAsync(answer.audio));
  };

  test.for(formats)("%s that ends or is cut at any byte never looks whole", async (format) => {
    const { upstream, connection } = given();
    const audio = await speak(format, smallEvents);
    const { path, headers, text } = upstream.requests.at(-1) ?? {};
    upstream.next(smallEvents);
    const again = {
      method: "POST",
      headers: { authorization: headers?.authorization ?? "" },
      body: text ?? "",
    };
    const whole = await (await fetch(`${connection.baseUrl}${path}`, again)).text();
    const ended = (length: number) => speak(format, plain("text/event-stream", whole.slice(0, length)));
    expect((await ended(whole.length)).equals(audio)).toBe(true);
    expect(whole.length).toBeGreaterThan(300);
    for (let length = 0; length < whole.length; length += 1) {
      await expect(ended(length), `${length}`).rejects.toBeInstanceOf(ProviderError);
    }
    for (let cutAfterBytes = 0; cutAfterBytes <= 68; cutAfterBytes += 1) {
      const cut = speak(format, { ...smallEvents, chunkBytes: 1, cutAfterBytes });
      await expect(cut, `${cutAfterBytes}`).rejects.toMatchObject({ kind: "network" });
    }
  });
}

/** A failure that the stand-in is told to answer the next request with. */
export function speechFailure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: SpeechBehaviour,
): SpeechFailure<SpeechVendorSetup> {
  return {
    name,
    kind,
    ...(behaviour.kind !== "audio" && { status: behaviour.status }),
    provoke({ upstream }) {
      upstream.next(behaviour);
      return undefined;
    },
  };
}

function plain(contentType: string, body: string): SpeechBehaviour {
  return { kind: "plain", status: 200, headers: { "content-type": contentType }, body };
}

/** Failures that are the same whoever the upstream is. */
export const wireFailures: readonly SpeechFailure<SpeechVendorSetup>[] = [
  speechFailure("200 with JSON", "bad_answer", plain("application/json", "{}")),
  speechFailure("200 with nothing", "bad_answer", plain("audio/mpeg", "")),
  speechFailure("200 with a page", "bad_answer", plain("text/html", "<html></html>")),
  speechFailure("cut before the first byte", "network", { kind: "audio", cutAfterBytes: 0 }),
  {
    name: "nobody there",
    kind: "network",
    provoke: ({ connection }) => ({ connection: { ...connection, baseUrl: "http://127.0.0.1:1" } }),
  },
];

/** A key that the stand-in does not know. */
export const wrongKey: SpeechFailure<SpeechVendorSetup> = {
  name: "a wrong key",
  kind: "credentials",
  status: 401,
  provoke: ({ connection }) => ({ connection: { ...connection, apiKey: "sk-wrong" } }),
};
