import { invalidBody } from "./json-body.ts";

/** A piece of a string's text, and of how many bytes it was made. */
export interface StringPiece {
  readonly text: string;
  readonly bytes: number;
}

const longestEscapeLength = 6;

/**
 * The text of a JSON string whose bytes, without the quotes, come in pieces. Throws invalid_body where parsing all of
 * it at once would fail.
 */
export function* jsonStringPieces(pieces: Iterable<Buffer>): Generator<StringPiece> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let openEscape = "";
  let highSurrogate = "";
  for (const bytes of pieces) {
    const written = openEscape + decode(decoder, bytes);
    const wholeLength = written.length - openEscapeLength(written);
    openEscape = written.slice(wholeLength);
    const text = highSurrogate + parseEscapes(written.slice(0, wholeLength));
    highSurrogate = endsInHighSurrogate(text) ? text.slice(-1) : "";
    const given = highSurrogate === "" ? text : text.slice(0, -1);
    if (!given.isWellFormed()) throw invalidBody("must be valid Unicode");
    yield { text: given, bytes: bytes.length };
  }
  decode(decoder);
  if (openEscape !== "") throw invalidBody("must be JSON");
  if (highSurrogate !== "") throw invalidBody("must be valid Unicode");
}

/** Without bytes: the end. */
function decode(decoder: InstanceType<typeof TextDecoder>, bytes?: Buffer): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch (thrown) {
    throw invalidBody("must be UTF-8", thrown);
  }
}

function parseEscapes(written: string): string {
  try {
    return JSON.parse(`"${written}"`) as string;
  } catch {
    throw invalidBody("must be JSON");
  }
}

/** How much of an escape that goes on in the next piece stands at the end. */
function openEscapeLength(written: string): number {
  const last = written.lastIndexOf("\\");
  const length = written.length - last;
  if (last === -1 || length >= longestEscapeLength) return 0;
  let first = last;
  while (first > 0 && written[first - 1] === "\\") first -= 1;
  const isEscaped = (last - first) % 2 === 1;
  return !isEscaped && (length === 1 || written[last + 1] === "u") ? length : 0;
}

function endsInHighSurrogate(text: string): boolean {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff;
}
