import type { ModelEntry, PriceEntry } from "./catalog-schema.ts";
import type { AudioFormat } from "./contract.ts";

/** What a model makes. */
export type Medium = ModelEntry["medium"];

/** One voice of a speech endpoint; `name` and `language` (BCP 47) are empty where the catalogue says nothing. */
export interface Voice {
  readonly id: string;
  readonly name: string;
  readonly language: string;
}

/** A unit that an endpoint charges by. */
export type Billable = PriceEntry["billable"];

/** What an endpoint charges for one kind of unit. */
export interface Price {
  readonly billable: Billable;
  readonly nanoUsdPerMillion: bigint;
  /** Most units that one input character may come to, for units that are counted afterwards; else undefined. */
  readonly mostPerInputCharacter: bigint | undefined;
}

/** What an endpoint can do with speech. */
export interface SpeechCapabilities {
  /** Encodings the upstream makes itself. */
  readonly formats: readonly AudioFormat[];
  /** Of one channel; what an answer really has stands in the answer. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Empty: any string is passed on. */
  readonly voices: readonly Voice[];
  /** Undefined: callers must name a voice. */
  readonly defaultVoice: string | undefined;
  /** Unicode code points. */
  readonly maxInputCharacters: number;
  /** Undefined: the upstream has no control of speed. */
  readonly speed: { readonly min: number; readonly max: number } | undefined;
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
  /** At least one. */
  readonly prices: readonly Price[];
  /** For the adapter alone. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** One provider's offer of a speech model. */
export interface SpeechEndpoint extends Endpoint {
  readonly speech: SpeechCapabilities;
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

/** The models and endpoints that a process knows; never changes after its making. */
export class Catalog {
  readonly #models: ReadonlyMap<string, Model>;
  readonly #speech: ReadonlyMap<string, SpeechModel>;

  constructor(models: Iterable<Model>, speechEndpoints: readonly SpeechEndpoint[]) {
    this.#models = new Map(byId([...models]).map((model) => [model.id, model]));
    const speech = [...this.#models.values()]
      .filter(({ medium }) => medium === "speech")
      .map((model) => ({
        ...model,
        endpoints: speechEndpoints.filter((endpoint) => endpoint.model === model.id),
      }))
      .filter(({ endpoints }) => endpoints.length > 0);
    this.#speech = new Map(speech.map((model) => [model.id, model]));
  }

  /** A speech model with its endpoints; undefined when nobody offers it or it makes another medium. */
  speechModel(id: string): SpeechModel | undefined {
    return this.#speech.get(id);
  }

  /** All speech models, ordered by id. */
  speechModels(): readonly SpeechModel[] {
    return [...this.#speech.values()];
  }

  /** Whether a model of any medium has this id, offered by somebody or not. */
  isKnownModel(id: string): boolean {
    return this.#models.has(id);
  }

  /** The same catalogue with only those providers' endpoints; models that nobody is left to offer are not in it. */
  offeredBy(isOn: (providerSlug: string) => boolean): Catalog {
    const endpoints = this.speechModels()
      .flatMap((model) => model.endpoints)
      .filter(({ providerSlug }) => isOn(providerSlug));
    const offered = new Set(endpoints.map(({ model }) => model));
    return new Catalog(
      [...this.#models.values()].filter(({ id }) => offered.has(id)),
      endpoints,
    );
  }
}

function byId<T extends { readonly id: string }>(entries: readonly T[]): readonly T[] {
  return entries.toSorted((one, other) => (one.id < other.id ? -1 : one.id > other.id ? 1 : 0));
}
