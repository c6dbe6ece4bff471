import type { AudioFormat } from "../../providers/contract.ts";

/** Bytes of an ID3v2 tag's header, and of an MPEG audio frame's. */
const tagHeaderBytes = 10;
const frameHeaderBytes = 4;
const bytesPerSample = 2;
/** Where a frame's header does not tell its length (free format), as much as the longest frame that does has. */
const longestFrameBytes = 1441;

/**
 * Whether the audio handed out so far can be used: one whole pcm sample, or one whole mp3 frame (MPEG audio layer III,
 * ISO/IEC 11172-3 and 13818-3) behind whatever tag comes first. Costs nothing once it is known.
 */
export class UsableAudio {
  readonly #format: AudioFormat;
  #usable = false;
  #bytes = 0;
  /** The bytes from the first that may begin a frame, as far as a header is not complete. */
  #head = Buffer.alloc(0);
  /** Bytes of a tag that are still to be passed over. */
  #skip = 0;
  /** How many bytes must have come for the first frame to be whole; undefined before its header is known. */
  #wholeAt: number | undefined;

  constructor(format: AudioFormat) {
    this.#format = format;
  }

  get usable(): boolean {
    return this.#usable;
  }

  /** Counts bytes that were handed out. */
  add(bytes: Uint8Array): void {
    if (this.#usable) return;
    if (this.#format === "mp3" && this.#wholeAt === undefined) this.#findFrame(bytes);
    this.#bytes += bytes.length;
    const wholeAt = this.#format === "pcm" ? bytesPerSample : this.#wholeAt;
    this.#usable = wholeAt !== undefined && this.#bytes >= wholeAt;
    if (this.#usable) this.#head = Buffer.alloc(0);
  }

  #findFrame(bytes: Uint8Array): void {
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    this.#head = Buffer.concat([this.#head, bytes.subarray(skipped)]);
    const startsAt = this.#bytes + bytes.length - this.#head.length;
    let position = 0;
    for (; position + frameHeaderBytes <= this.#head.length; position++) {
      const rest = this.#head.subarray(position);
      if (rest.toString("latin1", 0, 3) === "ID3") {
        if (rest.length < tagHeaderBytes) break;
        const tagBytes = tagHeaderBytes + synchsafe(rest.subarray(6, tagHeaderBytes));
        this.#skip = Math.max(0, tagBytes - rest.length);
        position += Math.min(tagBytes, rest.length) - 1;
        continue;
      }
      const length = frameLength(rest.readUInt32BE());
      if (length === undefined) continue;
      this.#wholeAt = startsAt + position + length;
      return;
    }
    this.#head = this.#head.subarray(Math.min(position, this.#head.length));
  }
}

/** A number of 28 bits in four bytes whose highest bits are 0 (ID3v2). */
function synchsafe(bytes: Uint8Array): number {
  return bytes.reduce((sum, byte) => sum * 128 + (byte & 127), 0);
}

const kilobitsMpeg1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const kilobitsMpeg2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const samplesASecond = [44_100, 48_000, 32_000];

/** The length of the layer III frame that a header begins, bytes; undefined when it is no such header. */
function frameLength(header: number): number | undefined {
  const [sync, version, layer] = [header >>> 21, (header >>> 19) & 3, (header >>> 17) & 3];
  const [rate, sampling, padding] = [(header >>> 12) & 15, (header >>> 10) & 3, (header >>> 9) & 1];
  if (sync !== 0x7ff || version === 1 || layer !== 1) return undefined;
  const isMpeg1 = version === 3;
  const kilobits = (isMpeg1 ? kilobitsMpeg1 : kilobitsMpeg2)[rate];
  const samples = samplesASecond[sampling];
  if (kilobits === undefined || samples === undefined) return undefined;
  if (kilobits === 0) return longestFrameBytes;
  const hertz = samples / (isMpeg1 ? 1 : version === 2 ? 2 : 4);
  return Math.floor(((isMpeg1 ? 144 : 72) * kilobits * 1000) / hertz) + padding;
}
