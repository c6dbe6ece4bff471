import type { AudioFormat } from "../../providers/contract.ts";
import { frameHeaderBytes, readMp3Frame, tagBytes, tagHeaderBytes } from "./mp3-frame.ts";

const bytesPerSample = 2;
/** Where a frame's header does not state its length (free format), as much as the longest frame that does has. */
const longestFrameBytes = 1441;
/** Bytes in which there is neither a tag nor a frame; no more of them are looked at. */
const mostSearchedBytes = 16 * longestFrameBytes;

/**
 * Whether the audio handed out so far can be used: one whole pcm sample, or one whole mp3 frame (MPEG audio layer III,
 * ISO/IEC 11172-3 and 13818-3) behind whatever tags come first, and a few frames' length of anything else. Where there
 * is none by then it can't be used, whatever follows. Costs nothing once it is known.
 */
export class UsableAudio {
  readonly #format: AudioFormat;
  #usable = false;
  #bytes = 0;
  /** The bytes from the first that may begin a frame, as far as a header is not complete. */
  #head = Buffer.alloc(0);
  /** Bytes of a tag that are still to be passed over. */
  #skip = 0;
  #searchedBytes = 0;
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
    if (this.#searchedBytes >= mostSearchedBytes) return;
    const skipped = Math.min(this.#skip, bytes.length);
    this.#skip -= skipped;
    const head = Buffer.concat([this.#head, bytes.subarray(skipped)]);
    const startsAt = this.#bytes + bytes.length - head.length;
    let position = 0;
    while (this.#searchedBytes < mostSearchedBytes) {
      const candidate = nextCandidate(head, position, position + mostSearchedBytes - this.#searchedBytes);
      this.#searchedBytes += candidate - position;
      position = candidate;
      if (position + frameHeaderBytes > head.length) break;
      if (head[position] === tagStart) {
        if (position + tagHeaderBytes > head.length) break;
        const end = position + tagBytes(head.subarray(position, position + tagHeaderBytes));
        this.#skip = Math.max(0, end - head.length);
        position = Math.min(end, head.length);
        continue;
      }
      const frame = readMp3Frame(head.readUInt32BE(position));
      if (frame !== undefined) {
        this.#wholeAt = startsAt + position + (frame.bytes ?? longestFrameBytes);
        return;
      }
      this.#searchedBytes++;
      position++;
    }
    this.#head = Buffer.from(head.subarray(position));
  }
}

const tagStart = 0x49;

/**
 * Where the next tag ("ID3") or frame (eleven bits of 1, a version, layer III) may begin, from `start` on and before
 * `end`; else where one may of whose header too little has come.
 */
function nextCandidate(head: Uint8Array, start: number, end: number): number {
  const last = Math.min(end, head.length - frameHeaderBytes + 1);
  for (let position = start; position < last; position++) {
    const byte = head[position];
    if (byte === 0xff && ((head[position + 1] as number) & 0xe6) === 0xe2) return position;
    if (byte === tagStart && head[position + 1] === 0x44 && head[position + 2] === 0x33) return position;
  }
  return Math.max(start, last);
}
