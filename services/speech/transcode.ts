/**
 * Makes MP3 out of PCM while it streams. Owns the encoders.
 *
 * 1. Bytes leave as soon as the encoder gives them; nothing waits for the source's end but the last frames.
 * 2. How the source cuts its bytes does not change the result.
 * 3. The end of the MP3 is written only after a clean end of the source.
 * 4. An encoder serves one stream at a time, and goes back to the pool only when nothing failed in it.
 */
import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createEncoder, type WasmMediaEncoder } from "wasm-media-encoders";
import { ProviderError } from "../../providers/contract.ts";

type Mp3Encoder = WasmMediaEncoder<"audio/mpeg">;
type EncoderParameters = Parameters<Mp3Encoder["configure"]>[0];

/** Bit rates that LAME takes at every sample rate from 16 kHz on; below that it goes no higher than 64. */
type Mp3BitrateKbps = 32 | 40 | 48 | 64 | 80 | 96 | 112 | 128 | 160;

const sampleRatesHz = [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] as const;
const bytesPerSample = 2;
/** Audio encoded in one go: some milliseconds of work, after which others get their turn. */
const sliceSeconds = 0.25;

/** PCM to be made into MP3: signed 16-bit little-endian samples, channels interleaved, cut anywhere. */
export interface PcmStream {
  readonly audio: AsyncIterable<Uint8Array>;
  readonly sampleRateHz: number;
  readonly channels: number;
  /** 64 a channel unless given. */
  readonly bitrateKbps?: Mp3BitrateKbps;
  /** Where encoders come from; a new one is made without. */
  readonly encoders?: Mp3Encoders;
}

/**
 * Encoders that are used again and again: each holds 16 MiB of address space, and making one for every stream would
 * keep the garbage collector busy.
 */
export class Mp3Encoders {
  readonly #idle: Mp3Encoder[] = [];
  readonly #maxIdle: number;
  #module: Promise<WebAssembly.Module> | undefined;

  constructor(maxIdle = 16) {
    this.#maxIdle = maxIdle;
  }

  /** How many wait to be used. */
  get idle(): number {
    return this.#idle.length;
  }

  /** An encoder that no other stream uses; configure it before use. */
  async take(): Promise<Mp3Encoder> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    this.#module ??= compileEncoder();
    return createEncoder("audio/mpeg", await this.#module);
  }

  /** Returns an encoder that has not failed; one over the limit is dropped. */
  give(encoder: Mp3Encoder): void {
    if (this.#idle.length < this.#maxIdle) this.#idle.push(encoder);
  }
}

async function compileEncoder(): Promise<WebAssembly.Module> {
  return WebAssembly.compile(await readFile(new URL(import.meta.resolve("wasm-media-encoders/wasm/mp3"))));
}

/**
 * The stream as MP3 of the same sample rate, constant bit rate. Returning early returns the source; what the source
 * throws is thrown as it is. Bytes at the end that make no whole sample are dropped. Throws ProviderError (bad_answer)
 * at once when MP3 has no such sample rate or number of channels.
 */
export function transcodePcmToMp3(pcm: PcmStream): AsyncIterable<Uint8Array> {
  const { sampleRateHz, channels, bitrateKbps, encoders = new Mp3Encoders(0) } = pcm;
  const outputSampleRate = sampleRatesHz.find((rate) => rate === sampleRateHz);
  if (outputSampleRate === undefined || (channels !== 1 && channels !== 2)) {
    throw new ProviderError("bad_answer", "The audio has a sample rate or channels that MP3 does not have.");
  }
  const source = pcm.audio[Symbol.asyncIterator]();
  const mp3 = encodeStream(source, encoders, {
    sampleRate: sampleRateHz,
    outputSampleRate,
    channels,
    bitrate: bitrateKbps ?? (channels === 1 ? 64 : 128),
  });
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => mp3.next(),
      // The source is ended first: a generator that waits for it would hear of the return only after its next chunk.
      return: async () => {
        await Promise.all([source.return?.(), mp3.return()]);
        return { done: true, value: undefined };
      },
    }),
  };
}

async function* encodeStream(
  source: AsyncIterator<Uint8Array>,
  encoders: Mp3Encoders,
  parameters: EncoderParameters,
): AsyncGenerator<Uint8Array, void, undefined> {
  let stream: EncoderStream | undefined;
  let sourceEnded = false;
  try {
    stream = new EncoderStream(await encoders.take(), parameters);
    for (;;) {
      // Unless it gives a chunk, it has ended or has thrown, and is not to be returned.
      sourceEnded = true;
      const next = await source.next();
      if (next.done) break;
      sourceEnded = false;
      for (const encoded of stream.write(next.value)) {
        if (encoded.length > 0) yield encoded; // 1.
        if (stream.turnIsOver()) await nextTurn();
      }
    }
    const last = stream.finish(); // 3.
    if (last.length > 0) yield last;
  } finally {
    if (stream?.failed === false) encoders.give(stream.encoder); // 4.
    if (!sourceEnded) await source.return?.();
  }
}

/** One stream's use of an encoder. */
class EncoderStream {
  readonly encoder: Mp3Encoder;
  readonly #channels: number;
  readonly #frameBytes: number;
  readonly #sliceBytes: number;
  #carried: Uint8Array = new Uint8Array(0);
  #bytesThisTurn = 0;
  /** Whether the encoder has thrown, and must not be used again. */
  failed = false;

  constructor(encoder: Mp3Encoder, parameters: EncoderParameters) {
    this.encoder = encoder;
    this.#channels = parameters.channels;
    this.#frameBytes = bytesPerSample * parameters.channels;
    this.#sliceBytes = Math.ceil(parameters.sampleRate * sliceSeconds) * this.#frameBytes;
    encoder.configure(parameters);
  }

  /** Encodes a chunk slice by slice; a slice may give no bytes yet. */
  *write(chunk: Uint8Array): Generator<Uint8Array, void, undefined> {
    const bytes = this.#carried.length === 0 ? chunk : Buffer.concat([this.#carried, chunk]); // 2.
    const wholeBytes = bytes.length - (bytes.length % this.#frameBytes);
    this.#carried = bytes.slice(wholeBytes);
    for (let start = 0; start < wholeBytes; start += this.#sliceBytes) {
      const slice = bytes.subarray(start, Math.min(start + this.#sliceBytes, wholeBytes));
      this.#bytesThisTurn += slice.length;
      yield this.#run(() => this.encoder.encode(samplesOf(slice, this.#channels)));
    }
  }

  /** What is left in the encoder. */
  finish(): Uint8Array {
    return this.#run(() => this.encoder.finalize());
  }

  /** Whether a slice's worth was encoded since this last said so. */
  turnIsOver(): boolean {
    if (this.#bytesThisTurn < this.#sliceBytes) return false;
    this.#bytesThisTurn = 0;
    return true;
  }

  /** Copies what the encoder gives, because it writes to the same place again. */
  #run(encode: () => Uint8Array): Uint8Array {
    try {
      return encode().slice();
    } catch (thrown) {
      this.failed = true;
      throw thrown;
    }
  }
}

/** Samples in -1..1, one array a channel. */
function samplesOf(bytes: Uint8Array, channels: number): Float32Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const frameBytes = bytesPerSample * channels;
  const length = bytes.length / frameBytes;
  return Array.from({ length: channels }, (_, channel) => {
    const samples = new Float32Array(length);
    for (let index = 0; index < length; index++) {
      samples[index] = view.getInt16(index * frameBytes + channel * bytesPerSample, true) / 32_768;
    }
    return samples;
  });
}
