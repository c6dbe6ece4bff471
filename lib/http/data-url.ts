/** The content of a data URL, or what is wrong with it: words that go after the name of the field. */
export type DataUrlContent =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly problem?: undefined }
  | { readonly bytes?: undefined; readonly problem: string };

const mebibyte = 1024 * 1024;
/** Parameters are named and, as in RFC 2045, a token or a quoted text; what they say is not looked at. */
const prefixPattern = /^data:image\/[a-z0-9][a-z0-9.+-]{0,99}(?:;[\w.+-]+=(?:"[^"]*"|[^\s",;]*))*;base64,/i;
const longestPrefix = 1024;
const defaultMaxBytes = 20 * mebibyte;
const digitsPerGroup = 4;
const notBase64 = "is not valid base64";

/** Whether a text is a data URL of any kind, well formed or not. */
export function isDataUrl(text: string): boolean {
  return /^\s*data:/i.test(text.slice(0, longestPrefix));
}

/**
 * The bytes of a `data:image/…;base64,…` URL (RFC 2397), parameters before `;base64` or not, whose base64 is
 * canonical: padded, without blanks. The type that it declares is not looked at. Longer content than `maxBytes` is refused before it is decoded.
 */
export function parseImageDataUrl(text: string, maxBytes = defaultMaxBytes): DataUrlContent {
  const decoder = new ImageDataUrlDecoder(maxBytes);
  decoder.take(text);
  return decoder.finish();
}

/** Decodes such a URL piece by piece, so that its text is never there as a whole. */
export class ImageDataUrlDecoder {
  readonly #maxBytes: number;
  readonly #parts: Buffer<ArrayBuffer>[] = [];
  /** What may still be part of the prefix; undefined once that is read. */
  #head: string | undefined = "";
  #problem: string | undefined;
  #encodedLength = 0;
  /** Fewer digits than make whole bytes. */
  #rest = "";
  #hasEnded = false;

  constructor(maxBytes = defaultMaxBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Goes on with the next piece of the URL's text. */
  take(text: string): void {
    if (this.#head === undefined) {
      this.#takeContent(text);
      return;
    }
    this.#head += text;
    if (this.#head.length >= longestPrefix) this.#readHead(this.#head);
  }

  /** The content, once the whole text was taken. */
  finish(): DataUrlContent {
    if (this.#head !== undefined) this.#readHead(this.#head);
    if (this.#problem !== undefined) return { problem: this.#problem };
    if (this.#rest !== "" || this.#parts.length === 0) return { problem: notBase64 };
    const bytes =
      this.#parts.length === 1 ? (this.#parts[0] as Buffer<ArrayBuffer>) : Buffer.concat(this.#parts);
    return bytes.length > this.#maxBytes ? { problem: tooLarge(this.#maxBytes) } : { bytes };
  }

  #readHead(head: string): void {
    this.#head = undefined;
    const prefix = prefixPattern.exec(head.slice(0, longestPrefix))?.[0];
    if (prefix === undefined) this.#problem = "is not a data URL of a base64 image";
    else this.#takeContent(head.slice(prefix.length));
  }

  #takeContent(text: string): void {
    this.#encodedLength += text.length;
    if (this.#problem !== undefined && this.#problem !== notBase64) return;
    if (this.#encodedLength > Math.ceil(this.#maxBytes / 3) * 4) this.#fail(tooLarge(this.#maxBytes));
    else if (this.#problem === undefined) this.#decode(this.#rest + text);
  }

  #decode(digits: string): void {
    const usable = digits.length - (digits.length % digitsPerGroup);
    this.#rest = digits.slice(usable);
    if (usable === 0) return;
    const encoded = digits.slice(0, usable);
    const bytes = Buffer.from(encoded, "base64");
    // Decoding lets through what it does not understand; only canonical base64 comes back the same.
    if (this.#hasEnded || bytes.toString("base64") !== encoded) this.#fail(notBase64);
    else this.#parts.push(bytes);
    this.#hasEnded = encoded.endsWith("=");
  }

  #fail(problem: string): void {
    this.#problem = problem;
    this.#parts.length = 0;
  }
}

function tooLarge(maxBytes: number): string {
  return `is larger than ${maxBytes / mebibyte} MiB`;
}
