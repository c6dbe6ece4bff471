import { Catalog, type SpeechCapabilities, type SpeechEndpoint } from "../../providers/catalog/catalog.ts";
import type { AttemptContext, SpeechAdapter, SpeechAnswer, SpeechCall } from "../../providers/contract.ts";
import type { ProviderSet } from "../../providers/registry.ts";
import {
  accept,
  modelsOf,
  outputsOf,
  providersOf,
  reportOf,
  type Script,
  type SeenCall,
  type Step,
} from "./scripted-adapter.ts";

/** What a speaker does with each call. */
export interface SpeakerScript extends Script<Uint8Array> {
  readonly audio?: readonly Step<Uint8Array>[];
  readonly sampleRateHz?: number;
}

/** One call as a speaker saw it. */
export type HeardCall = SeenCall<SpeechCall>;

/** A speech adapter that follows a script and keeps the calls it heard. */
export class FakeSpeaker implements SpeechAdapter {
  readonly heard: HeardCall[] = [];
  readonly #script: SpeakerScript;

  constructor(script: SpeakerScript = { audio: [Buffer.from("audio")] }) {
    this.#script = script;
  }

  async synthesize(call: SpeechCall, context: AttemptContext): Promise<SpeechAnswer> {
    const { audio = [], sampleRateHz = 24_000 } = this.#script;
    const heard = await accept(this.heard, this.#script, call, context);
    return {
      format: call.format === "mp3" ? "mp3" : "pcm",
      sampleRateHz,
      channels: 1,
      audio: outputsOf(audio, heard),
      report: () => reportOf(this.#script, heard),
    };
  }
}

/** Providers by slug that are all on and speak with these adapters; those without one are off. */
export function fakeProviders(speakers: Readonly<Record<string, SpeechAdapter | undefined>>): ProviderSet {
  return providersOf("speech", speakers);
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
  return new Catalog(modelsOf("speech", endpoints), endpoints);
}
