/**
 * Reads JSON whose images are megabytes of base64 under one key, "b64_json" unless another is given. Parsing such a text as a whole costs a copy of it as
 * a string, a scan of every character and the image as a string; here an image's characters are found by its quotes.
 *
 * - The result is what JSON.parse gives, but with bytes in place of each string under that key.
 * - What is not such a string, or is written with escapes, goes to JSON.parse as it stands.
 * - An image's characters are held as the chunks they came in until its closing quote, then decoded once.
 */
import { ProviderError } from "../contract.ts";
import { decodeBase64 } from "./base64.ts";

const quote = 0x22;
const backslash = 0x5c;
const betweenKeyAndValue = /^[ \t\r\n]*:[ \t\r\n]*$/;
/** Stands in for an image while the rest is parsed; "#" is in no base64. */
const placeholder = /^#(\d+)$/;
/** Longest text without its images, bytes. */
const maxRestBytes = 16 * 1024 * 1024;

/** Where the next byte stands. `image`: in a string under the key, in which no escape has been seen. */
type Place = "outside" | "string" | "image";

/** Reads one JSON text, pushed in chunks cut anywhere. Chunks must not change once pushed. */
export class ImageJsonReader {
  readonly #imageKey: string;
  readonly #images: Uint8Array[] = [];
  /** The text with its images taken out. */
  #rest = Buffer.alloc(0);
  #restBytes = 0;
  #place: Place = "outside";
  /** The character after a backslash lies in the next chunk. */
  #skipsNext = false;
  /** The string that is being read, as far as it could still be the key; the last one read while outside. */
  #string = "";
  /** What has come since the last string, as far as it can matter. */
  #between = "";
  #imagePieces: Uint8Array[] = [];

  constructor(imageKey = "b64_json") {
    this.#imageKey = imageKey;
  }

  /** Takes the next chunk. Throws ProviderError where the text around the images has no end. */
  push(bytes: Uint8Array): void {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < chunk.length; ) {
      if (this.#place === "outside") at = this.#readOutside(chunk, at);
      else if (this.#place === "string") at = this.#readString(chunk, at);
      else at = this.#readImage(chunk, at);
    }
  }

  /** Ends the text and gives its value. Throws ProviderError where it is no JSON or an image is not base64. */
  finish(): unknown {
    try {
      return JSON.parse(this.#rest.toString("utf8", 0, this.#restBytes), (key, value: unknown) =>
        key === this.#imageKey && typeof value === "string" ? this.#imageOf(value) : value,
      );
    } catch (error) {
      if (error instanceof ProviderError) throw error;
      // The parser's own words would quote the text.
      throw new ProviderError("bad_answer", "The upstream sent something that is not JSON.");
    }
  }

  #readOutside(chunk: Buffer, start: number): number {
    const found = chunk.indexOf(quote, start);
    const end = found < 0 ? chunk.length : found;
    if (this.#string === this.#imageKey && this.#between.length + end - start < 64) {
      this.#between += chunk.toString("latin1", start, end);
    } else {
      this.#string = "";
    }
    this.#keep(chunk.subarray(start, end));
    if (found < 0) return end;
    const isImage = this.#string === this.#imageKey && betweenKeyAndValue.test(this.#between);
    this.#place = isImage ? "image" : "string";
    this.#string = "";
    this.#between = "";
    if (!isImage) this.#keep(chunk.subarray(found, found + 1));
    return found + 1;
  }

  #readString(chunk: Buffer, start: number): number {
    const found = this.#endOfString(chunk, start);
    const end = found < 0 ? chunk.length : found;
    if (this.#string.length <= this.#imageKey.length) {
      this.#string += chunk.toString("latin1", start, Math.min(end, start + this.#imageKey.length + 1));
    }
    if (found < 0) {
      this.#keep(chunk.subarray(start));
      return end;
    }
    this.#keep(chunk.subarray(start, end + 1));
    this.#place = "outside";
    return end + 1;
  }

  /** The string's closing quote, or -1. */
  #endOfString(chunk: Buffer, start: number): number {
    let at = start + (this.#skipsNext ? 1 : 0);
    this.#skipsNext = false;
    for (;;) {
      const end = chunk.indexOf(quote, at);
      const escaped = chunk.subarray(at, end < 0 ? chunk.length : end).indexOf(backslash);
      if (escaped < 0) return end;
      at += escaped + 2;
      if (at > chunk.length) this.#skipsNext = true;
      if (at >= chunk.length) return -1;
    }
  }

  #readImage(chunk: Buffer, start: number): number {
    const found = chunk.indexOf(quote, start);
    const end = found < 0 ? chunk.length : found;
    const piece = chunk.subarray(start, end);
    if (piece.includes(backslash)) {
      this.#giveUpImage();
      return start;
    }
    if (piece.length > 0) this.#imagePieces.push(piece);
    if (found < 0) return end;
    const image = decodeBase64(this.#imagePieces);
    if (image === undefined) {
      this.#giveUpImage();
      return end;
    }
    this.#keep(Buffer.from(`"#${this.#images.length}"`));
    this.#images.push(image);
    this.#imagePieces = [];
    this.#place = "outside";
    return end + 1;
  }

  /** The string goes to JSON.parse after all. */
  #giveUpImage(): void {
    this.#keep(Buffer.of(quote));
    for (const piece of this.#imagePieces) this.#keep(piece);
    this.#imagePieces = [];
    this.#place = "string";
  }

  #keep(piece: Uint8Array): void {
    const length = this.#restBytes + piece.length;
    if (length > maxRestBytes)
      throw new ProviderError("bad_answer", "The upstream sent too much beside images.");
    if (length > this.#rest.length) {
      const grown = Buffer.allocUnsafe(Math.max(2 * length, 4096));
      grown.set(this.#rest.subarray(0, this.#restBytes));
      this.#rest = grown;
    }
    this.#rest.set(piece, this.#restBytes);
    this.#restBytes = length;
  }

  #imageOf(value: string): Uint8Array {
    const index = placeholder.exec(value)?.[1];
    const image = index === undefined ? decodeBase64([Buffer.from(value)]) : this.#images[Number(index)];
    if (image === undefined) {
      throw new ProviderError("bad_answer", "The upstream sent an image that is not base64.");
    }
    return image;
  }
}

/** Reads a whole text that lies in pieces. Throws ProviderError as the reader does. */
export function parseImageJson(pieces: readonly Uint8Array[]): unknown {
  const reader = new ImageJsonReader();
  for (const piece of pieces) reader.push(piece);
  return reader.finish();
}
