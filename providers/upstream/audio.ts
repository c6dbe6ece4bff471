import type { AudioFormat, SpeechAnswer, SpeechCall, UpstreamReport } from "../contract.ts";
import { type NativeAudioFormat, ProviderError } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";
import { errorFromTransport } from "./failure.ts";
import { refuse } from "./send.ts";
import { untilLeft } from "./until-left.ts";
import { samplesOfWav } from "./wav.ts";

/** Media types that cannot hold the format asked for; anything else that is audio or unnamed is taken. */
const foreignMediaTypes: Readonly<Record<NativeAudioFormat, RegExp>> = {
  mp3: /\/((x-|vnd\.)?wave?|pcm|l16|raw|ogg|opus|flac|aac)\b/,
  pcm: /\/((x-|vnd\.)?wave?|mpeg|mp3|ogg|opus|flac|aac)\b/,
  wav: /\/(mpeg|mp3|ogg|opus|flac|aac)\b/,
};

/** Whether an answer's headers allow that its body is audio of this format. */
export function isAudioOf(
  { headers }: Pick<ProviderHttpResponse, "headers">,
  format: NativeAudioFormat,
): boolean {
  const mediaType = mediaTypeOf(headers);
  if (mediaType === "" || /^(application|binary)\/octet-stream\b/.test(mediaType)) return true;
  return mediaType.startsWith("audio/") && !foreignMediaTypes[format].test(mediaType);
}

/** The media type of an answer in lower case, with its parameters; empty where it names none. */
export function mediaTypeOf(headers: Readonly<Record<string, string>>): string {
  return headers["content-type"]?.toLowerCase() ?? "";
}

/** Samples a second and channels of raw samples. */
export interface PcmShape {
  readonly sampleRateHz: number;
  readonly channels: number;
}

/**
 * What a media type such as `audio/L16;codec=pcm;rate=24000` says of raw samples (RFC 2586), for the rest what is known
 * otherwise.
 */
export function pcmShapeOf(mediaType: string, known: PcmShape): PcmShape {
  const parameter = (name: RegExp, least: number, most: number): number | undefined => {
    const value = Number(new RegExp(`;\\s*(?:${name.source})\\s*=\\s*"?(\\d{1,6})`).exec(mediaType)?.[1]);
    return value >= least && value <= most ? value : undefined;
  };
  return {
    sampleRateHz: parameter(/rate|sample_?rate/, 8000, 48_000) ?? known.sampleRateHz,
    channels: parameter(/channels/, 1, 2) ?? known.channels,
  };
}

/** An answer's body as audio. Throws ProviderError, also where there is none. A generator would cost each piece more. */
export function audioOf(
  { body }: Pick<ProviderHttpResponse, "body">,
  signal: AbortSignal,
): AsyncIterableIterator<Uint8Array, undefined> {
  const source = body[Symbol.asyncIterator]();
  let isEmpty = true;
  const received = (step: IteratorResult<Uint8Array, undefined>) => {
    if (step.done && isEmpty) throw emptyAnswer();
    isEmpty = false;
    return step;
  };
  const failed = (error: unknown): never => {
    throw errorFromTransport(error, signal);
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => source.next().then(received, failed),
    return: async () => (await source.return?.()) ?? { done: true, value: undefined },
  };
}

/** Audio of a format as it was asked for, and what ends its making. */
export interface BegunAudio {
  readonly format: NativeAudioFormat;
  /** Of raw samples; a wav's own header stands above it. */
  readonly shape: PcmShape;
  readonly audio: AsyncIterableIterator<Uint8Array, void>;
  readonly response: Pick<ProviderHttpResponse, "cancel">;
  report?(): UpstreamReport | undefined;
}

/** The answer of an adapter: of wav the samples, as pcm. Resolves once a wav's header has come; throws ProviderError. */
export async function speechAnswer({
  format,
  shape,
  audio,
  response,
  report,
}: BegunAudio): Promise<SpeechAnswer> {
  const answer = { report: report ?? (() => undefined) };
  if (format !== "wav") return { ...answer, ...shape, format, audio: untilLeft(audio, response) };
  const wav = await samplesOfWav(untilLeft(audio, response));
  return { ...answer, format: "pcm" satisfies AudioFormat, ...wav };
}

/** What is known of an answer whose body is the audio itself. */
export interface BodyFacts {
  /** What the vendor reports, which stands in its headers, if anywhere. */
  readonly report?: () => UpstreamReport | undefined;
  /** Samples a second of its mp3, where they are not what was asked for. */
  readonly mp3RateHz?: number;
}

/**
 * The answer whose body is the audio itself, of the format asked for; it is given up where its headers say that it is
 * something else. Throws ProviderError.
 */
export async function answerOfBody(
  response: ProviderHttpResponse,
  { format, sampleRateHz, channels }: Pick<SpeechCall, "format" | "sampleRateHz" | "channels">,
  signal: AbortSignal,
  { report, mp3RateHz = sampleRateHz }: BodyFacts = {},
): Promise<SpeechAnswer> {
  if (!isAudioOf(response, format)) throw refuse(response);
  const known = { sampleRateHz: format === "mp3" ? mp3RateHz : sampleRateHz, channels };
  const shape = pcmShapeOf(mediaTypeOf(response.headers), known);
  const audio = audioOf(response, signal);
  return await speechAnswer({ format, shape, audio, response, ...(report && { report }) });
}

/** Decodes base64 or hex strictly: what Buffer would skip or cut short is an error. Throws ProviderError. */
export function decodeAudio(text: unknown, encoding: "base64" | "hex" = "base64"): Uint8Array {
  if (typeof text === "string") {
    const audio = Buffer.from(text, encoding);
    const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
    const length = encoding === "hex" ? text.length / 2 : Math.floor((text.length * 3) / 4) - padding;
    if (audio.length === length) return audio;
  }
  throw new ProviderError("bad_answer", `The upstream sent audio that is not ${encoding}.`);
}

/** The failure of an answer without audio. */
export function emptyAnswer(): ProviderError {
  return new ProviderError("bad_answer", "The upstream's answer holds no audio.", { status: 200 });
}
