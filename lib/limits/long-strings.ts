/**
 * Reads JSON whose long strings make most of it. They are taken out of the text before that is parsed and are read piece
 * by piece, with pauses for other requests, so that neither the text of one nor that of the whole body is ever made
 * unless somebody wants it.
 *
 * In place of a long string stands a name that no client can know. What is said of a string is what parsing all of it at
 * once would say.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import { DomainError } from "../runtime/domain-error.ts";
import type { BodyBytes } from "./body-bytes.ts";
import type { StringSpan } from "./json-bounds.ts";

/** From how many bytes on, as it is written, a string is long: no field but texts and images takes more. */
export const longStringBytes = 64 << 10;

const mebibyte = 1 << 20;
const bytesPerTurn = mebibyte / 2;
/** So many digits that strings by the ten thousand have names of one length. */
const indexDigits = 4;
const longestEscapeLength = 6;

/** The long strings of one JSON text. */
export class LongStrings {
  readonly #body: BodyBytes;
  readonly #spans: ReadonlyMap<string, StringSpan>;
  #bytesInTurn = 0;

  /** The names begin with the prefix, which stands for itself between quotes; four digits follow. */
  constructor(body: BodyBytes, spans: readonly StringSpan[], prefix: string) {
    this.#body = body;
    this.#spans = new Map(
      spans.map((span, index) => [prefix + String(index).padStart(indexDigits, "0"), span]),
    );
  }

  /** In their order. */
  get names(): Iterable<string> {
    return this.#spans.keys();
  }

  /** How many bytes the string of a name has as it is written; undefined where no string has that name. */
  bytesOf(name: string): number | undefined {
    const span = this.#spans.get(name);
    return span && span.until - span.from;
  }

  /** The JSON text with names for long strings. Throws invalid_body when more than so many bytes are left. */
  textWithout(maxBytes: number): Buffer {
    let leftBytes = this.#body.size;
    for (const { from, until } of this.#spans.values()) leftBytes -= until - from;
    if (leftBytes > maxBytes)
      throw invalid(`must not be longer than ${maxBytes / mebibyte} MiB without its images`);
    if (this.#spans.size === 0) return this.#body.whole();
    const parts: Buffer[] = [];
    let at = 0;
    for (const [name, { from, until }] of this.#spans) {
      parts.push(...this.#body.pieces(at, from), Buffer.from(name));
      at = until;
    }
    return Buffer.concat([...parts, ...this.#body.pieces(at)]);
  }

  /** The text of a string, with turns of the event loop in between. Throws invalid_body. */
  async *read(name: string): AsyncGenerator<string> {
    const span = this.#spans.get(name);
    if (span === undefined) return;
    for (const { text, bytes } of stringPieces(this.#body.pieces(span.from, span.until))) {
      yield text;
      this.#bytesInTurn += bytes;
      if (this.#bytesInTurn < bytesPerTurn) continue;
      this.#bytesInTurn = 0;
      await nextTurn();
    }
  }
}

/** The text of a string whose bytes, without the quotes, come in pieces, and of how many bytes each part was made. */
function* stringPieces(pieces: Iterable<Buffer>): Generator<{ text: string; bytes: number }> {
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
    if (!given.isWellFormed()) throw invalid("must be valid Unicode");
    yield { text: given, bytes: bytes.length };
  }
  decode(decoder);
  if (openEscape !== "") throw invalid("must be JSON");
  if (highSurrogate !== "") throw invalid("must be valid Unicode");
}

/** Without bytes: the end. */
function decode(decoder: InstanceType<typeof TextDecoder>, bytes?: Buffer): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
  } catch (thrown) {
    throw invalid("must be UTF-8", thrown);
  }
}

function parseEscapes(written: string): string {
  try {
    return JSON.parse(`"${written}"`) as string;
  } catch {
    throw invalid("must be JSON");
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

function invalid(message: string, cause?: unknown): DomainError {
  return DomainError.invalid([{ path: "", message }], undefined, cause);
}
