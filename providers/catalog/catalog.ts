import type { NativeAudioFormat } from "../contract.ts";
import type { ImageCapabilities, ImagePrice } from "./image.ts";
import type { SpeechBillable } from "./schema.ts";

/** What a model makes. */
export type Medium = "speech" | "image";

/** One voice of a speech endpoint; `name` and `language` (BCP 47) are empty where the catalogue says nothing. */
export interface Voice {
  readonly id: string;
  readonly name: string;
  readonly language: string;
  readonly gender?: "female" | "male" | "neutral" | undefined;
  /** An https URL of a sample. */
  readonly previewUrl?: string | undefined;
}

/** A unit that a speech endpoint charges by. */
export type Billable = SpeechBillable;

/** What a speech endpoint charges for one kind of unit. */
export interface Price {
  readonly billable: Billable;
  readonly nanoUsdPerMillion: bigint;
  /**
   * Most units that one character may come to, for units that are counted afterwards; else undefined. Characters are those
   * of the input; for tokens of text those of instructions and passthrough options as well. Seconds are counted in
   * milliseconds.
   */
  readonly mostPerInputCharacter: bigint | undefined;
}

/** The voices that an upstream listed last; none before it has. */
export class FetchedVoices {
  current: readonly Voice[] = [];
}

/** What an endpoint can do with speech. */
export interface SpeechCapabilities {
  /** Encodings the upstream makes itself. */
  readonly formats: readonly NativeAudioFormat[];
  /** Of one channel; what an answer really has stands in the answer. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Empty: any string is passed on. Where they are fetched, those of the last list that came. */
  readonly voices: readonly Voice[];
  /** Where the upstream lists its voices itself. */
  readonly fetchedVoices?: FetchedVoices;
  /** Other names of the voices, by what callers write. */
  readonly voiceAliases?: ReadonlyMap<string, string>;
  /** Whether any other voice is passed on as well where an account's own key is used: its account there may have some. */
  readonly ownVoices?: boolean;
  /** Undefined: callers must name a voice, unless it is optional. */
  readonly defaultVoice: string | undefined;
  /** Whether the upstream speaks without a voice. */
  readonly voiceOptional?: boolean;
  /** Unicode code points. */
  readonly maxInputCharacters: number;
  /** Undefined: the upstream has no control of speed. */
  readonly speed: { readonly min: number; readonly max: number } | undefined;
  /** Whether it takes instructions on how to speak, in words. */
  readonly instructions: boolean;
}

/** One provider's offer of a model, whatever the medium. */
export interface Endpoint {
  /** UUID, stable for good. */
  readonly id: string;
  readonly model: string;
  readonly permaslug: string;
  readonly providerSlug: string;
  readonly providerName: string;
  /** The model's name at the upstream. */
  readonly upstreamModel: string;
  /** Keys of `provider.options.<slug>` that go to the upstream. */
  readonly passthrough: readonly string[];
  /** For the adapter alone. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** `free`: what is cancelled costs the vendor's customer no more than what was complete. Unset: it bills all of it. */
  readonly cancel?: "free" | undefined;
  /** What is charged where it is not the price list: the vendor's own figure. The list bounds it then. */
  readonly billedBy?: "reported_cost" | undefined;
}

/** One provider's offer of a speech model. */
export interface SpeechEndpoint extends Endpoint {
  readonly speech: SpeechCapabilities;
  /** At least one. */
  readonly prices: readonly Price[];
}

/** One provider's offer of an image model. */
export interface ImageEndpoint extends Endpoint {
  readonly image: ImageCapabilities;
  /** At least one, for the images that come out. */
  readonly prices: readonly ImagePrice[];
}

/** A model of the catalogue. */
export interface Model {
  readonly id: string;
  /** The dated name of the exact model. */
  readonly permaslug: string;
  readonly name: string;
  readonly description: string;
  /** When it came out, Unix seconds. */
  readonly createdUnixS: number;
  readonly medium: Medium;
}

/** A model that speaks, and who offers it, in order of preference; at least one. */
export interface SpeechModel extends Model {
  readonly endpoints: readonly SpeechEndpoint[];
}

/** A model that draws, and who offers it, in order of preference; at least one. */
export interface ImageModel extends Model {
  readonly endpoints: readonly ImageEndpoint[];
}

/** The models and endpoints that a process knows; never changes after its making, but for fetched voices. */
export class Catalog {
  readonly #models: ReadonlyMap<string, Model>;
  readonly #speech: ReadonlyMap<string, SpeechModel>;
  readonly #image: ReadonlyMap<string, ImageModel>;
  /** Endpoints that have no price and so serve nobody. */
  readonly unpriced: readonly Endpoint[];

  constructor(
    models: Iterable<Model>,
    speechEndpoints: readonly SpeechEndpoint[],
    imageEndpoints: readonly ImageEndpoint[] = [],
    unpriced: readonly Endpoint[] = [],
  ) {
    this.unpriced = unpriced;
    const sorted = byId([...models]);
    this.#models = new Map(sorted.map((model) => [model.id, model]));
    this.#speech = offersOf("speech", sorted, speechEndpoints);
    this.#image = offersOf("image", sorted, imageEndpoints);
  }

  /** A speech model with its endpoints; undefined when nobody offers it or it makes another medium. */
  speechModel(id: string): SpeechModel | undefined {
    return this.#speech.get(id);
  }

  /** All speech models, ordered by id. */
  speechModels(): readonly SpeechModel[] {
    return [...this.#speech.values()];
  }

  /** An image model with its endpoints; undefined when nobody offers it or it makes another medium. */
  imageModel(id: string): ImageModel | undefined {
    return this.#image.get(id);
  }

  /** All image models, ordered by id. */
  imageModels(): readonly ImageModel[] {
    return [...this.#image.values()];
  }

  /** Whether a model of any medium has this id, offered by somebody or not. */
  isKnownModel(id: string): boolean {
    return this.#models.has(id);
  }

  /** The same catalogue with only those providers' endpoints; models that nobody is left to offer are not in it. */
  offeredBy(isOn: (providerSlug: string) => boolean): Catalog {
    const speech = this.speechModels().flatMap(({ endpoints }) => endpoints);
    const image = this.imageModels().flatMap(({ endpoints }) => endpoints);
    const speechLeft = speech.filter(({ providerSlug }) => isOn(providerSlug));
    const imageLeft = image.filter(({ providerSlug }) => isOn(providerSlug));
    const offered = new Set([...speechLeft, ...imageLeft].map(({ model }) => model));
    const models = [...this.#models.values()].filter(({ id }) => offered.has(id));
    return new Catalog(models, speechLeft, imageLeft);
  }
}

/** The models of a medium that somebody offers, with their endpoints. */
function offersOf<E extends Endpoint>(
  medium: Medium,
  models: readonly Model[],
  endpoints: readonly E[],
): ReadonlyMap<string, Model & { readonly endpoints: readonly E[] }> {
  const offered = models
    .filter((model) => model.medium === medium)
    .map((model) => ({ ...model, endpoints: endpoints.filter((endpoint) => endpoint.model === model.id) }))
    .filter((model) => model.endpoints.length > 0);
  return new Map(offered.map((model) => [model.id, model]));
}

function byId<T extends { readonly id: string }>(entries: readonly T[]): readonly T[] {
  return entries.toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
}
