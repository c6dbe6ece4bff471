/**
 * What an upstream provider is to this system. An adapter turns one call into one upstream request and its answer into
 * a stream; it knows nothing of accounts, routing, retries or money.
 *
 * 1. An adapter makes exactly one attempt: no retry, no fallback, no catalogue look-up.
 * 2. It resolves once the upstream has accepted the call, and its audio yields bytes as they arrive: it never waits to
 *    fill a buffer and never reads far ahead of its consumer.
 * 3. Aborting `context.signal`, or returning from the audio early, ends the upstream request at once.
 * 4. It throws ProviderError only, with the upstream's own text in `cause` and nowhere else.
 * 5. A clean end of the audio means that the answer is whole; anything else throws.
 * 6. It calls `context.onSent` once the upstream has all of the request, which is when the upstream may begin to bill: it
 *    hands it on to `http.request`. An engine in this process calls it as it begins.
 */
import type { ReadSettings } from "./declared-endpoint.ts";
import type { FetchResult, OpenWebSocket, ProviderHttp, ProviderNetwork } from "./provider-http.ts";

/** Encodings of audio: MPEG layer III frames, or signed 16-bit little-endian samples. */
export type AudioFormat = "mp3" | "pcm";

/** What an upstream can be asked for; from `wav` the adapter takes the samples, so that its answer is `pcm`. */
export type NativeAudioFormat = AudioFormat | "wav";

/** What went wrong with an attempt. */
export type ProviderErrorKind =
  /** The upstream says that the request is wrong: the caller's fault, if our catalogue is right. */
  | "invalid_request"
  /** The text has nothing that can be spoken. */
  | "nothing_to_speak"
  /** Refused by the upstream's usage policy. */
  | "content_policy"
  /** The upstream refuses our credentials, plan or balance. */
  | "credentials"
  /** The upstream limits or sheds load (its 429, 503 with retry-after, 529). */
  | "overloaded"
  /** Our own engine, or line before a server, is full. That is soon over: no reason to leave the endpoint alone. */
  | "engine_full"
  /** The upstream was too slow: its own time-out status, or one of our deadlines. */
  | "timeout"
  /** No connection, or it broke before the end. */
  | "network"
  /** The upstream failed (its 5xx). */
  | "upstream"
  /** The upstream answered with something that its contract does not allow. */
  | "bad_answer";

/** What else is known about a failed attempt. */
export interface ProviderErrorOptions {
  /** The upstream's HTTP status; leave out when it gave none. */
  status?: number;
  /** How long the upstream asked to wait, milliseconds. */
  retryAfterMs?: number;
  /** The upstream's own words or the thrown error: for the log, never for callers. */
  cause?: unknown;
}

/** Kinds after which another endpoint may do better. */
const retryableKinds: ReadonlySet<ProviderErrorKind> = new Set([
  "credentials",
  "overloaded",
  "engine_full",
  "timeout",
  "network",
  "upstream",
  "bad_answer",
]);

/** The one error that adapters throw. */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly kind: ProviderErrorKind;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(kind: ProviderErrorKind, message: string, options: ProviderErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.kind = kind;
    this.status = options.status;
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Whether another endpoint may be tried. */
  get retryable(): boolean {
    return retryableKinds.has(this.kind);
  }
}

/**
 * Tokens as the upstream reported them; absent kinds are 0. Nothing is corrected: what is no count stays what it is, or is
 * NaN, and is judged by whoever charges for it.
 */
export interface TokenUsage {
  prompt: number;
  completion: number;
  reasoning?: number;
  cachedPrompt?: number;
  imagePrompt?: number;
  imageCompletion?: number;
  audioCompletion?: number;
}

/** What an upstream says that one generation came to. What it does not say is left out; nothing is corrected. */
export interface UpstreamReport {
  readonly tokens?: TokenUsage | undefined;
  /** Characters of the input that it billed. */
  readonly characters?: number | undefined;
  /** What it charged, US dollars. */
  readonly costUsd?: number | undefined;
}

/** How an adapter reaches its upstream. */
export interface ProviderConnection {
  /** Base URL without a slash at its end; the vendor's own unless the operator set another. */
  readonly baseUrl: string;
  /** The credential; empty for providers that need none. */
  readonly apiKey: string;
}

/** What surrounds one attempt. */
export interface AttemptContext {
  /** Ends the attempt; fires also on the deadline of the request. */
  readonly signal: AbortSignal;
  readonly connection: ProviderConnection;
  /** The upstream has been sent the whole request: from now on it may work, and bill, whoever waits for it. */
  onSent(): void;
}

/** One text to speak, with all defaults filled in and checked against the endpoint. */
export interface SpeechCall {
  /** The model's name at the upstream. */
  readonly upstreamModel: string;
  readonly input: string;
  /** How to speak; undefined: not said, and where the endpoint takes none. */
  readonly instructions?: string | undefined;
  /** Empty where the endpoint needs none and the caller named none. */
  readonly voice: string;
  /** One of the endpoint's native formats. */
  readonly format: NativeAudioFormat;
  /** Samples a second and channels of raw samples as the catalogue has them, where the answer does not say. */
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Within the endpoint's range; 1 where it has no speed control. */
  readonly speed: number;
  /** Allowed passthrough parameters, by the upstream's own names. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The endpoint's `settings` of the catalogue, as they stand there. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** An answer that has begun. */
export interface SpeechAnswer {
  readonly format: AudioFormat;
  readonly sampleRateHz: number;
  readonly channels: number;
  /** Chunks of at least one byte, cut anywhere. May be consumed once. */
  readonly audio: AsyncIterable<Uint8Array>;
  /** What the upstream reported, as far as it has come; asked when the audio has ended. Undefined: nothing. */
  report(): UpstreamReport | undefined;
}

/** Speaks. */
export interface SpeechAdapter {
  /** Throws ProviderError. */
  synthesize(call: SpeechCall, context: AttemptContext): Promise<SpeechAnswer>;
}

/** Encodings of images. */
export type ImageFormat = "png" | "jpeg" | "webp" | "svg";

/** An image to start from, already fetched and checked: its bytes are what `mediaType` says. */
export interface ReferenceImage {
  readonly bytes: Uint8Array;
  readonly mediaType: "image/png" | "image/jpeg" | "image/webp";
}

/** One prompt to draw, with all defaults filled in and checked against the endpoint. */
export interface ImageCall {
  /** The model's name at the upstream. */
  readonly upstreamModel: string;
  readonly prompt: string;
  /** How many images; 1 where the endpoint makes single images. */
  readonly n: number;
  /** Pixels, one of what the endpoint can make; undefined: the endpoint decides. */
  readonly size: { readonly width: number; readonly height: number } | undefined;
  /** The same in words, for upstreams that know no pixels: a ratio such as "16:9", a tier such as "1K". */
  readonly shape?: { readonly aspectRatio: string; readonly resolution: string } | undefined;
  /** `auto` where the endpoint has no control. */
  readonly quality: "auto" | "low" | "medium" | "high";
  /** `auto` where the endpoint has no control. */
  readonly background: "auto" | "transparent" | "opaque";
  /** One of the endpoint's native formats. */
  readonly format: ImageFormat;
  /** 0 to 100 for jpeg and webp; undefined: the endpoint's default, and where it has no control. */
  readonly compression: number | undefined;
  /** Same seed and parameters should give the same images; undefined: random, and where it has no control. */
  readonly seed: number | undefined;
  /** At most what the endpoint takes. */
  readonly references: readonly ReferenceImage[];
  /** A PNG whose transparent parts are where the first reference may change; only where the endpoint takes one. */
  readonly mask?: ReferenceImage | undefined;
  /** Whether previews are wanted; false where the endpoint can't. */
  readonly stream: boolean;
  /** Most previews of an image, 0 to 3; undefined: as many as the endpoint usually gives. */
  readonly partialImages?: number | undefined;
  /** Allowed passthrough parameters, by the upstream's own names. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The endpoint's `settings` of the catalogue, as they stand there. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** What comes of a prompt, in the order in which it comes. */
export type ImageOutput =
  /** A preview; `index` counts up from 0 over the answer. */
  | {
      readonly kind: "partial";
      readonly index: number;
      readonly bytes: Uint8Array;
      readonly mediaType: string;
    }
  /** A piece of text from a model that writes markup. */
  | { readonly kind: "text"; readonly phase: "content" | "reasoning" | "draft"; readonly text: string }
  /** A whole, final image. `mediaType` is the truth about its bytes as far as the upstream states it. */
  | { readonly kind: "image"; readonly bytes: Uint8Array; readonly mediaType: string };

/** An answer that has begun. */
export interface ImageAnswer {
  /** May be consumed once; a clean end without any image means that the upstream made none. */
  readonly output: AsyncIterable<ImageOutput>;
  /** Words of the prompt that the upstream says it did not understand, in their order; absent where it does not say. */
  readonly unrecognizedWords?: readonly string[];
  /** What the upstream reported, as far as it has come; asked when the output has ended. Undefined: nothing. */
  report(): UpstreamReport | undefined;
}

/** Draws. */
export interface ImageAdapter {
  /** Resolves once the upstream has accepted the call; throws ProviderError. */
  generate(call: ImageCall, context: AttemptContext): Promise<ImageAnswer>;
}

/** What adapters are given by the process they run in. */
export interface ProviderDependencies {
  /** It and `webSocket` reach the base URL's host and those under `keyHosts`, no other: what is sent may hold a key. */
  readonly http: ProviderHttp;
  readonly fetchResult: FetchResult;
  readonly webSocket?: OpenWebSocket;
}

/** Threads of an engine in this process, as they stand now; for metrics. */
export interface EnginePool {
  readonly name: string;
  /** Tasks that have a thread. */
  readonly running: number;
  /** Tasks that wait for one. */
  readonly waiting: number;
  /** Tasks done since the start. */
  readonly completed: number;
}

/** A voice as an upstream lists it. */
export interface ListedVoice {
  readonly id: string;
  /** Empty where it has no other. */
  readonly name: string;
}

/** A provider that runs: its adapters, and how to end what they own (pools, workers). */
export interface Provider {
  readonly speech?: SpeechAdapter;
  readonly image?: ImageAdapter;
  /** The voices of a model that the upstream lists now, for endpoints that leave them to it. Throws ProviderError. */
  listVoices?(
    upstreamModel: string,
    context: Pick<AttemptContext, "signal" | "connection">,
  ): Promise<readonly ListedVoice[]>;
  /** None unless the provider is an engine in this process. */
  enginePools?(): readonly EnginePool[];
  close?(): Promise<void>;
}

/** What manifests.ts lists: one provider, before it runs. */
export interface ProviderManifest {
  /** Lower-case slug, the name of its folder, its catalogue file and its environment variables. */
  readonly slug: string;
  /** The vendor's own base URL; empty for engines in this process, and where there is none but the operator's. */
  readonly defaultBaseUrl: string;
  /** Whether the provider is off until the operator gives its base URL; a key is taken then, too, if it has one. */
  readonly needsAddress?: boolean;
  /** Hosts beside the base URL's, with all below them, that may see the key: `bfl.ai` is also `api.eu.bfl.ai`. */
  readonly keyHosts?: readonly string[];
  /** Whether the provider is off until the operator or the account gives a key. */
  readonly needsKey: boolean;
  /** Whether it is given the operator's key where there is one, although it is on without. */
  readonly takesKey?: boolean;
  /** Where it may lie and whom to trust there; unset: at any address, the system's authorities. */
  readonly network?: ProviderNetwork;
  /** Reads settings when a catalogue is loaded; without it they are left to the adapter. */
  readonly readSettings?: ReadSettings;
  /** Loads and makes the adapters; called once in a process. Until then a manifest needs none of their modules. */
  create(dependencies: ProviderDependencies): Promise<Provider>;
}
