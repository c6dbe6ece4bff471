/**
 * Reads WAV as it streams: the header, then the samples as signed 16-bit little-endian, whatever they were.
 *
 * - Sizes of a stream are guesses, often 0 or the largest number: what follows the header is samples up to the stated
 *   size, or to the end where that comes first.
 * - Sources: Microsoft, "Multimedia Programming Interface and Data Specifications 1.0" (RIFF); WAVEFORMATEXTENSIBLE.
 */
import { ProviderError } from "../contract.ts";

/** What a WAV holds. */
export interface WavSamples {
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly audio: AsyncIterable<Uint8Array>;
}

/** Longest header with all chunks before the samples, bytes. */
const maxHeaderBytes = 64 * 1024;
const chunkHeaderBytes = 8;
const riffHeaderBytes = 12;
const largestSize = 0xffff_ffff;

const [pcm, float, extensible] = [1, 3, 0xfffe];

/** Bytes of a sample and its value in -1..1, by format and bits. */
const encodings: ReadonlyMap<string, { readonly bytes: number; read(view: DataView, at: number): number }> =
  new Map([
    [`${pcm} 8`, { bytes: 1, read: (view, at) => view.getUint8(at) / 128 - 1 }],
    [`${pcm} 24`, { bytes: 3, read: (view, at) => view.getInt16(at + 1, true) / 32_768 }],
    [`${pcm} 32`, { bytes: 4, read: (view, at) => view.getInt32(at, true) / 2_147_483_648 }],
    [`${float} 32`, { bytes: 4, read: (view, at) => view.getFloat32(at, true) }],
  ]);

interface Header {
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly encoding: string;
  readonly dataBytes: number;
  /** Where the samples begin. */
  readonly length: number;
}

/** Resolves once the header has come. Leaving the samples leaves the source. Throws ProviderError, and what it throws. */
export async function samplesOfWav(source: AsyncIterable<Uint8Array>): Promise<WavSamples> {
  const pieces = source[Symbol.asyncIterator]();
  let begun = Buffer.alloc(0);
  try {
    for (;;) {
      const next = await pieces.next();
      if (next.done) throw noWav();
      begun = Buffer.concat([begun, next.value]);
      const header = readHeader(begun);
      if (header !== undefined) {
        const audio = samples(begun.subarray(header.length), pieces, header);
        const { sampleRateHz, channels } = header;
        return { sampleRateHz, channels, audio: leavingEnds(audio, pieces) };
      }
      if (begun.length > maxHeaderBytes) throw noWav();
    }
  } catch (thrown) {
    await pieces.return?.();
    throw thrown;
  }
}

/** The header, or undefined where more of it must come first. */
function readHeader(bytes: Buffer): Header | undefined {
  if (bytes.length < riffHeaderBytes) return undefined;
  if (bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WAVE") throw noWav();
  let format: Omit<Header, "dataBytes" | "length"> | undefined;
  for (let at = riffHeaderBytes; at + chunkHeaderBytes <= bytes.length; ) {
    const name = bytes.toString("latin1", at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const start = at + chunkHeaderBytes;
    if (name === "data") {
      if (format === undefined) throw noWav();
      return { ...format, dataBytes: size === 0 ? largestSize : size, length: start };
    }
    if (size > maxHeaderBytes) throw noWav();
    if (start + size > bytes.length) return undefined;
    if (name === "fmt ") format = readFormat(bytes.subarray(start, start + size));
    at = start + size + (size % 2);
  }
  return undefined;
}

function readFormat(chunk: Buffer): Omit<Header, "dataBytes" | "length"> {
  if (chunk.length < 16) throw noWav();
  const tag = chunk.readUInt16LE(0);
  const kind = tag === extensible && chunk.length >= 26 ? chunk.readUInt16LE(24) : tag;
  const [channels, sampleRateHz, bits] = [
    chunk.readUInt16LE(2),
    chunk.readUInt32LE(4),
    chunk.readUInt16LE(14),
  ];
  const encoding = `${kind} ${bits}`;
  const isKnown = encoding === `${pcm} 16` || encodings.has(encoding);
  if (!isKnown || channels < 1 || channels > 2 || sampleRateHz < 8000 || sampleRateHz > 48_000) throw noWav();
  return { sampleRateHz, channels, encoding };
}

async function* samples(
  first: Buffer,
  rest: AsyncIterator<Uint8Array>,
  { encoding, dataBytes }: Header,
): AsyncGenerator<Uint8Array, void> {
  const convert = converterOf(encoding);
  let left = dataBytes;
  for (let piece: Uint8Array = first; ; ) {
    const converted = convert(piece.subarray(0, left));
    left -= Math.min(left, piece.length);
    if (converted.length > 0) yield converted;
    // To the end also where no more samples come: only there the answer is known to be whole.
    const next = await rest.next();
    if (next.done) return;
    piece = next.value;
  }
}

/** Makes samples cut anywhere into 16-bit ones. */
function converterOf(name: string): (piece: Uint8Array) => Uint8Array {
  const encoding = encodings.get(name);
  if (encoding === undefined) return (piece) => piece;
  const { bytes, read } = encoding;
  let carried: Uint8Array = new Uint8Array(0);
  return (piece) => {
    const all = carried.length === 0 ? piece : Buffer.concat([carried, piece]);
    const count = Math.floor(all.length / bytes);
    const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
    const made = Buffer.allocUnsafe(2 * count);
    for (let index = 0; index < count; index++) {
      const value = Math.round(read(view, index * bytes) * 32_768);
      made.writeInt16LE(Math.max(-32_768, Math.min(32_767, value || 0)), 2 * index);
    }
    carried = all.slice(count * bytes);
    return made;
  };
}

function leavingEnds<T>(output: AsyncGenerator<T, void>, source: AsyncIterator<unknown>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => output.next(),
      // The source is ended first: a generator that waits for it would hear of the return only after its next piece.
      return: async () => {
        await source.return?.();
        return await output.return();
      },
    }),
  };
}

function noWav(): ProviderError {
  return new ProviderError("bad_answer", "The upstream sent something that is no WAV of a known encoding.");
}
