import type { AudioFormat } from "../../providers/contract.ts";
import { frameHeaderBytes, readMp3Frame, tagBytes, tagHeaderBytes } from "./mp3-frame.ts";

const bytesPerSample = 2;
const tagStart = Buffer.from("ID3");

/** How long audio is that comes in pieces cut anywhere: by its samples, or by the headers of its mp3 frames. */
export class AudioDuration {
  readonly #format: AudioFormat;
  readonly #bytesPerSecond: number;
  #bytes = 0;
  #mp3Seconds = 0;
  /** Bytes of the frame or tag begun last that are still to come. */
  #skip = 0;
  /** The beginning of a header whose end has not come. */
  #head: Buffer = Buffer.alloc(0);

  constructor(format: AudioFormat, pcm: { readonly sampleRateHz: number; readonly channels: number }) {
    this.#format = format;
    this.#bytesPerSecond = pcm.sampleRateHz * pcm.channels * bytesPerSample;
  }

  /** Of what has been added; frames count from their headers on. */
  get milliseconds(): number {
    const seconds = this.#format === "pcm" ? this.#bytes / this.#bytesPerSecond : this.#mp3Seconds;
    return Math.round(seconds * 1000);
  }

  /** Takes the next piece. */
  add(piece: Uint8Array): void {
    this.#bytes += piece.length;
    if (this.#format === "pcm") return;
    const skipped = Math.min(this.#skip, piece.length);
    this.#skip -= skipped;
    if (this.#skip > 0) return;
    const bytes = Buffer.concat([this.#head, piece.subarray(skipped)]);
    let at = 0;
    while (at < bytes.length) {
      const length = this.#lengthAt(bytes.subarray(at, at + tagHeaderBytes));
      if (length === undefined) break;
      at += length;
    }
    this.#skip = Math.max(0, at - bytes.length);
    this.#head = Buffer.from(bytes.subarray(at));
  }

  /** How far the next header is; undefined where more must come before that is known. */
  #lengthAt(start: Buffer): number | undefined {
    if (start.length < frameHeaderBytes) return undefined;
    if (start.subarray(0, tagStart.length).equals(tagStart)) {
      return start.length < tagHeaderBytes ? undefined : tagBytes(start);
    }
    const frame = readMp3Frame(start.readUInt32BE());
    if (frame === undefined) return 1;
    this.#mp3Seconds += frame.samples / frame.sampleRateHz;
    return frame.bytes ?? frameHeaderBytes;
  }
}
