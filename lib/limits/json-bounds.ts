/**
 * Counts what a JSON text holds while its bytes arrive, so that one which would cost far more to parse than it weighs
 * is refused before it is parsed, and mostly before it is all there.
 *
 * It is no parser: as far as a text is JSON it sees what a parser sees, and where it stops to be, a parser stops. The
 * verdict does not depend on how the text is cut into chunks.
 */
import { DomainError } from "../runtime/domain-error.ts";
import { asBuffer } from "./body-bytes.ts";

/** How many members and items a JSON body of a request may have in all: far more than any use of it has. */
export const maxBodyElements = 1024;

/** What a JSON text may hold. */
export interface JsonBoundsOptions {
  /** Members of all objects and items of all arrays together. */
  readonly maxElements: number;
  /** Arrays and objects within each other; 1 is that of the outermost one. */
  readonly maxDepth: number;
  /** Of a member's name, as it is written between its quotes. */
  readonly maxKeyBytes: number;
  /** From how many bytes on a string that is no name is listed in `longStrings`; none is unless given. */
  readonly longStringBytes?: number;
}

/** Where a string stands in its text: from behind its first quote until its last one, in bytes. */
export interface StringSpan {
  readonly from: number;
  readonly until: number;
}

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const arrayStart = 0x5b;
const backslash = 0x5c;
const arrayEnd = 0x5d;
const objectStart = 0x7b;
const objectEnd = 0x7d;
/**
 * How far to look for the end of a string byte by byte, also after each escaped quote, before asking indexOf: many short
 * ones cost no call each.
 */
const stepsBeforeSearch = 24;

/** The scan of one JSON text. */
export class JsonBounds {
  readonly #bounds: JsonBoundsOptions;
  /** For each container that is open, whether it is an object. */
  readonly #open: boolean[] = [];
  readonly #longStrings: StringSpan[] = [];
  /** Bytes of the text before those that are being looked at. */
  #before = 0;
  #stringFrom = 0;
  #elements = 0;
  /** Whether the next token begins a member or an item. */
  #expectsElement = false;
  #inString = false;
  #isKey = false;
  #keyBytes = 0;
  /** Whether the next byte of the string is escaped. */
  #isEscaped = false;

  constructor(bounds: JsonBoundsOptions) {
    this.#bounds = bounds;
  }

  /** Goes on with the next bytes of the text. Throws invalid_body at the first bound that is passed. */
  take(chunk: Uint8Array): void {
    const bytes = asBuffer(chunk);
    let at = 0;
    while (at < bytes.length) at = this.#inString ? this.#passString(bytes, at) : this.#passTokens(bytes, at);
    this.#before += bytes.length;
  }

  /** The long strings that have ended so far, in their order. */
  get longStrings(): readonly StringSpan[] {
    return this.#longStrings;
  }

  /** Up to the next string or the end. */
  #passTokens(bytes: Buffer, from: number): number {
    for (let at = from; at < bytes.length; at += 1) {
      switch (bytes[at]) {
        case space:
        case tab:
        case lineFeed:
        case carriageReturn:
        case colon:
          break;
        case comma:
          this.#expectsElement = true;
          break;
        case arrayStart:
          this.#openContainer(false);
          break;
        case objectStart:
          this.#openContainer(true);
          break;
        case arrayEnd:
        case objectEnd:
          this.#open.pop();
          this.#expectsElement = false;
          break;
        case quote:
          this.#isKey = this.#expectsElement && this.#open.at(-1) === true;
          this.#countElement();
          this.#inString = true;
          this.#keyBytes = 0;
          this.#stringFrom = this.#before + at + 1;
          return at + 1;
        default:
          if (this.#expectsElement) this.#countElement();
      }
    }
    return bytes.length;
  }

  #openContainer(isObject: boolean): void {
    this.#countElement();
    this.#open.push(isObject);
    this.#expectsElement = true;
    const { maxDepth } = this.#bounds;
    if (this.#open.length > maxDepth) throw beyond(`must not be nested deeper than ${maxDepth} levels`);
  }

  #countElement(): void {
    if (!this.#expectsElement) return;
    this.#expectsElement = false;
    this.#elements += 1;
    const { maxElements } = this.#bounds;
    if (this.#elements > maxElements)
      throw beyond(`must not have more than ${maxElements} members and items`);
  }

  /** Past the string's end, or up to the end of the bytes. */
  #passString(bytes: Buffer, from: number): number {
    const end = this.#findEnd(bytes, from);
    this.#inString = end === -1;
    if (this.#isKey) this.#countKeyBytes((end === -1 ? bytes.length : end) - from);
    else if (end !== -1) this.#noteString(this.#before + end);
    return end === -1 ? bytes.length : end + 1;
  }

  #noteString(until: number): void {
    const from = this.#stringFrom;
    if (until - from >= (this.#bounds.longStringBytes ?? Number.POSITIVE_INFINITY)) {
      this.#longStrings.push({ from, until });
    }
  }

  #countKeyBytes(count: number): void {
    this.#keyBytes += count;
    const { maxKeyBytes } = this.#bounds;
    if (this.#keyBytes > maxKeyBytes) throw beyond(`must not have names longer than ${maxKeyBytes} bytes`);
  }

  /** Where the quote stands that ends the string, -1 if it is not among these bytes. */
  #findEnd(bytes: Buffer, from: number): number {
    for (let at = from; ; at += 1) {
      const searchAt = Math.min(at + stepsBeforeSearch, bytes.length);
      for (; at < searchAt; at += 1) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (bytes[at] === backslash) this.#isEscaped = true;
        else if (bytes[at] === quote) return at;
      }
      const found = bytes.indexOf(quote, at);
      const until = found === -1 ? bytes.length : found;
      const count = countBackslashes(bytes, at, until);
      const isAllOfThem = count === until - at;
      const isEscaped = (count + (isAllOfThem && this.#isEscaped ? 1 : 0)) % 2 === 1;
      this.#isEscaped = found === -1 && isEscaped;
      if (found === -1 || !isEscaped) return found;
      at = found;
    }
  }
}

/** How many backslashes stand at the end of a range. */
function countBackslashes(bytes: Buffer, from: number, until: number): number {
  let first = until;
  while (first > from && bytes[first - 1] === backslash) first -= 1;
  return until - first;
}

function beyond(message: string): DomainError {
  return DomainError.invalid([{ path: "", message }]);
}
