import { silentLog } from "../../lib/runtime/log.ts";
import { Catalog, type SpeechCapabilities, type SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import {
  type AttemptContext,
  ProviderError,
  type SpeechAdapter,
  type SpeechAnswer,
  type SpeechCall,
  type TokenUsage,
  type UpstreamReport,
} from "../../providers/contract.ts";
import { createProviders, type ProviderSet } from "../../providers/registry.ts";
import { noResultFetches } from "./no-results.ts";

/**
 * Gives bytes, throws, falls silent until it is aborted, or waits for a promise, taking no notice of the abort, and
 * gives the bytes that it resolves with, if any.
 */
export type SpeakerStep = Uint8Array | Error | "silence" | Promise<Uint8Array | undefined>;

/** What a speaker does with each call. */
export interface SpeakerScript {
  /** Before it accepts the call. */
  readonly before?: readonly SpeakerStep[];
  /** Its audio. */
  readonly audio?: readonly SpeakerStep[];
  readonly sampleRateHz?: number;
  /** The tokens that it reports once its audio has ended. */
  readonly usage?: TokenUsage;
  /** What else it reports then. */
  readonly report?: Omit<UpstreamReport, "tokens">;
  /** Whether its request is sent whole, which it tells as it begins; true unless given. */
  readonly sent?: boolean;
}

/** One call as a speaker saw it. */
export interface HeardCall extends AttemptContext {
  readonly call: SpeechCall;
  /** How many chunks were asked for and given. */
  pulled: number;
  /** Whether its audio has ended, in whatever way. */
  ended: boolean;
}

/** A speech adapter that follows a script and keeps the calls it heard. */
export class FakeSpeaker implements SpeechAdapter {
  readonly heard: HeardCall[] = [];
  readonly #script: SpeakerScript;

  constructor(script: SpeakerScript = { audio: [Buffer.from("audio")] }) {
    this.#script = script;
  }

  async synthesize(call: SpeechCall, context: AttemptContext): Promise<SpeechAnswer> {
    const heard: HeardCall = { ...context, call, pulled: 0, ended: false };
    this.heard.push(heard);
    if (this.#script.sent !== false) context.onSent();
    for (const step of this.#script.before ?? []) await perform(step, context.signal);
    const { sampleRateHz = 24_000 } = this.#script;
    return {
      format: call.format === "mp3" ? "mp3" : "pcm",
      sampleRateHz,
      channels: 1,
      audio: this.#speak(heard),
      report: () => (heard.ended ? { ...this.#script.report, tokens: this.#script.usage } : undefined),
    };
  }

  async *#speak(heard: HeardCall): AsyncGenerator<Uint8Array> {
    try {
      for (const step of this.#script.audio ?? []) {
        const bytes = await perform(step, heard.signal);
        if (bytes === undefined) continue;
        heard.pulled += 1;
        yield bytes;
      }
    } finally {
      heard.ended = true;
    }
  }
}

async function perform(step: SpeakerStep, signal: AbortSignal): Promise<Uint8Array | undefined> {
  if (step instanceof Promise) return step;
  if (step instanceof Error) throw step;
  if (step === "silence") await aborted(signal);
  if (signal.aborted) throw new ProviderError("network", "the request was ended from this side");
  return step === "silence" ? undefined : step;
}

function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", resolve, { once: true });
  });
}

/** Providers by slug that are all on and speak with these adapters; those without one are off. */
export function fakeProviders(speakers: Readonly<Record<string, SpeechAdapter | undefined>>): ProviderSet {
  const manifests = Object.entries(speakers).map(([slug, speech]) => ({
    slug,
    defaultBaseUrl: `http://${slug}.test`,
    needsKey: speech === undefined,
    create: async () => (speech === undefined ? {} : { speech }),
  }));
  const http = { request: () => Promise.reject(new Error("a fake speaker makes no requests")) };
  return createProviders({ environment: {}, http, results: noResultFetches, log: silentLog, manifests });
}

/** What a test changes about an endpoint. */
export type EndpointChanges = Partial<Omit<SpeechEndpoint, "speech">> & {
  readonly speech?: Partial<SpeechCapabilities>;
};

/** An endpoint that gives both formats in any voice, named after its provider. */
export function speechEndpoint({ speech, ...changes }: EndpointChanges = {}): SpeechEndpoint {
  const { providerSlug = "acme", model = "acme/voice" } = changes;
  return {
    id: `endpoint-of-${providerSlug}`,
    model,
    permaslug: `${model}-2030-01-01`,
    providerSlug,
    providerName: providerSlug.toUpperCase(),
    upstreamModel: "voice-1",
    passthrough: [],
    prices: [{ billable: "input_character", nanoUsdPerMillion: 1_000n, mostPerInputCharacter: undefined }],
    settings: {},
    ...changes,
    speech: {
      formats: ["mp3", "pcm"],
      sampleRateHz: 24_000,
      channels: 1,
      voices: [],
      defaultVoice: "anna",
      maxInputCharacters: 100,
      speed: { min: 0.5, max: 2 },
      instructions: false,
      ...speech,
    },
  };
}

/** A catalogue of these endpoints and the models that they name. */
export function catalogOf(...endpoints: SpeechEndpoint[]): Catalog {
  const models = new Map(endpoints.map(({ model, permaslug }) => [model, permaslug]));
  return new Catalog(
    [...models].map(([id, permaslug]) => ({
      id,
      permaslug,
      name: id.toUpperCase(),
      description: `Speaks as ${id}.`,
      createdUnixS: 1_900_000_000,
      medium: "speech",
    })),
    endpoints,
  );
}
