import { createOutboundHttp } from "../../lib/http/outbound-fetch.ts";
import { noResults } from "../../test/fakes/no-results.ts";
import type { OpenAiUpstream, OpenAiUpstreamOptions } from "../../test/upstreams/openai.ts";
import type { SpeechBehaviour } from "../../test/upstreams/openai-behaviour.ts";
import type { AudioFormat, ProviderErrorKind, ProviderManifest, SpeechCall } from "../contract.ts";
import { describeSpeechProvider, type SpeechFailure, type SpeechProviderSetup } from "../provider.suite.ts";

/** A provider of this dialect, the stand-in for its upstream, and one of its calls that the stand-in takes. */
export interface CompatibleSpeech {
  readonly manifest: ProviderManifest;
  startUpstream(options: OpenAiUpstreamOptions): Promise<OpenAiUpstream>;
  readonly call: Pick<SpeechCall, "upstreamModel" | "voice"> & Partial<Pick<SpeechCall, "settings">>;
  /** Formats that the upstream makes itself. */
  readonly formats: readonly AudioFormat[];
}

/** What the suite knows of a provider of this dialect. */
export interface CompatibleSpeechSetup extends SpeechProviderSetup {
  readonly upstream: OpenAiUpstream;
}

/** The acceptance suite of a provider that speaks by this dialect, with the failures that the dialect distinguishes. */
export function describeCompatibleSpeech(
  name: string,
  speech: CompatibleSpeech,
  failures: readonly SpeechFailure<CompatibleSpeechSetup>[] = [],
): void {
  describeSpeechProvider(name, () => createSetup(speech), [...usualFailures, ...failures]);
}

const apiKey = "sk-the-right-one";
const input = "A sentence nobody else may read.";

async function createSetup({ manifest, startUpstream, call: given, formats }: CompatibleSpeech) {
  const upstream = await startUpstream({
    apiKey,
    // Slow enough for what looks at an answer amid its audio, and more than buffers hold for the long text.
    behave: (body) =>
      body.input === "long"
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

function failure(
  name: string,
  kind: ProviderErrorKind,
  behaviour: SpeechBehaviour,
): SpeechFailure<CompatibleSpeechSetup> {
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

function refused(status: number, code?: string): SpeechBehaviour {
  const message = `${apiKey} may not say: ${input}`;
  return { kind: "error", status, message, ...(code !== undefined && { code }) };
}

function plain(contentType: string, body: string): SpeechBehaviour {
  return { kind: "plain", status: 200, headers: { "content-type": contentType }, body };
}

const usualFailures: readonly SpeechFailure<CompatibleSpeechSetup>[] = [
  failure("400", "invalid_request", refused(400)),
  failure("400 moderation_blocked", "content_policy", refused(400, "moderation_blocked")),
  failure("403", "credentials", refused(403)),
  failure("429", "overloaded", refused(429)),
  failure("429 insufficient_quota", "credentials", refused(429, "insufficient_quota")),
  failure("500", "upstream", refused(500)),
  failure("503", "overloaded", refused(503)),
  failure("504", "timeout", refused(504)),
  failure("200 with JSON", "bad_answer", plain("application/json", "{}")),
  failure("200 with nothing", "bad_answer", plain("audio/mpeg", "")),
  failure("200 with a page", "bad_answer", plain("text/html", "<html></html>")),
  failure("cut before the first byte", "network", { kind: "audio", cutAfterBytes: 0 }),
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
    provoke: ({ call }) => ({ call: { ...call, upstreamModel: "no-such-model" } }),
  },
  {
    name: "nobody there",
    kind: "network",
    provoke: ({ connection }) => ({ connection: { ...connection, baseUrl: "http://127.0.0.1:1" } }),
  },
];
