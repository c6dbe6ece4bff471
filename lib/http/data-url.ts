/** The content of a data URL, or what is wrong with it: words that go after the name of the field. */
export type DataUrlContent =
  | { readonly bytes: Uint8Array<ArrayBuffer>; readonly problem?: undefined }
  | { readonly bytes?: undefined; readonly problem: string };

const mebibyte = 1024 * 1024;
/** Parameters are named and, as in RFC 2045, a token or a quoted text; what they say is not looked at. */
const prefixPattern = /^data:image\/[a-z0-9][a-z0-9.+-]{0,99}(?:;[\w.+-]+=(?:"[^"]*"|[^\s",;]*))*;base64,/i;
const longestPrefix = 1024;

/** Whether a text is a data URL of any kind, well formed or not. */
export function isDataUrl(text: string): boolean {
  return /^\s*data:/i.test(text.slice(0, longestPrefix));
}

/**
 * The bytes of a `data:image/…;base64,…` URL (RFC 2397), parameters before `;base64` or not, whose base64 is canonical: padded, without blanks. The type that
 * it declares is not looked at. Longer content than `maxBytes` is refused before it is decoded.
 */
export function parseImageDataUrl(text: string, maxBytes = 20 * mebibyte): DataUrlContent {
  const prefix = prefixPattern.exec(text.slice(0, longestPrefix))?.[0];
  if (prefix === undefined) return { problem: "is not a data URL of a base64 image" };
  const encodedLength = text.length - prefix.length;
  if (encodedLength > Math.ceil(maxBytes / 3) * 4) return tooLarge(maxBytes);
  const encoded = text.slice(prefix.length);
  const bytes = Buffer.from(encoded, "base64");
  // Decoding lets through what it does not understand; only canonical base64 comes back the same.
  if (bytes.length === 0 || bytes.toString("base64") !== encoded) return { problem: "is not valid base64" };
  return bytes.length > maxBytes ? tooLarge(maxBytes) : { bytes };
}

function tooLarge(maxBytes: number): DataUrlContent {
  return { problem: `is larger than ${maxBytes / mebibyte} MiB` };
}
