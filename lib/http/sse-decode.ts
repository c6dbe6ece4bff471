/**
 * Server-sent events as their bytes arrive. Those whose data is megabytes are framed on bytes and never made into a
 * string; small ones are texts.
 *
 * - The pieces of an event's data are views of the chunks that came in; nothing of it is copied.
 * - What is held is the event that is still coming, at most `maxEventBytes` and one chunk. Once `read` has returned,
 *   nothing here refers to an event's bytes: a consumer that takes its time holds only what `read` made of them.
 */

/** An event grew past the limit before it ended. */
export class OversizedEventError extends Error {
  override readonly name = "OversizedEventError";

  constructor() {
    super("A server-sent event is too large.");
  }
}

/** One server-sent event. */
export interface SplitEvent {
  /** The `event` field; "message" where it is missing. */
  readonly type: string;
  /** The `data` lines as UTF-8, joined by line feeds, cut anywhere. */
  readonly data: readonly Uint8Array[];
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const newline = Uint8Array.of(lineFeed);
const byteOrderMark = "\u00ef\u00bb\u00bf";
/** Enough of a line to know its field: "event: " or a byte order mark and that. */
const headBytes = 10;

/**
 * Splits an event stream (WHATWG HTML, "Server-sent events") into its events as their bytes arrive, and yields what `read`
 * makes of each; what stands before the first blank line at the end of the input is no event. Throws OversizedEventError,
 * and what `bytes` and `read` throw.
 */
export async function* splitServerSentEvents<T>(
  bytes: AsyncIterable<Uint8Array>,
  maxEventBytes: number,
  read: (event: SplitEvent) => T,
): AsyncGenerator<T, undefined> {
  const splitter = new EventSplitter(read);
  for await (const chunk of bytes) {
    yield* splitter.feed(chunk);
    if (splitter.heldBytes > maxEventBytes) throw new OversizedEventError();
  }
}

/** The same events with their data as text. */
export function decodeServerSentEvents(
  bytes: AsyncIterable<Uint8Array>,
  maxEventBytes: number,
): AsyncGenerator<{ readonly type: string; readonly data: string }, undefined> {
  return splitServerSentEvents(bytes, maxEventBytes, ({ type, data }) => ({
    type,
    data: Buffer.concat(data).toString("utf8"),
  }));
}

class EventSplitter<T> {
  readonly #read: (event: SplitEvent) => T;
  #line: Uint8Array[] = [];
  #lineBytes = 0;
  #isFirstLine = true;
  /** The last chunk ended with CR: an LF at the start of the next belongs to it. */
  #skipsLineFeed = false;
  #type = "";
  #data: Uint8Array[] = [];
  #dataBytes = 0;
  #dataLines = 0;

  constructor(read: (event: SplitEvent) => T) {
    this.#read = read;
  }

  get heldBytes(): number {
    return this.#lineBytes + this.#dataBytes;
  }

  *feed(chunk: Uint8Array): Generator<T, void> {
    if (chunk.length === 0) return;
    let start = this.#skipsLineFeed && chunk[0] === lineFeed ? 1 : 0;
    this.#skipsLineFeed = false;
    let nextReturn = chunk.indexOf(carriageReturn, start);
    for (;;) {
      if (nextReturn >= 0 && nextReturn < start) nextReturn = chunk.indexOf(carriageReturn, start);
      const nextFeed = chunk.indexOf(lineFeed, start);
      const end = nextReturn < 0 ? nextFeed : nextFeed < 0 ? nextReturn : Math.min(nextReturn, nextFeed);
      this.#extendLine(chunk.subarray(start, end < 0 ? chunk.length : end));
      if (end < 0) return;
      if (this.#endLine()) yield this.#takeEvent();
      start = end + 1;
      if (end !== nextReturn) continue;
      if (start === chunk.length) this.#skipsLineFeed = true;
      else if (chunk[start] === lineFeed) start += 1;
    }
  }

  #extendLine(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#line.push(piece);
    this.#lineBytes += piece.length;
  }

  /** Takes the line in; says whether it ends an event. */
  #endLine(): boolean {
    let line = this.#line;
    let length = this.#lineBytes;
    this.#line = [];
    this.#lineBytes = 0;
    let head = headOf(line);
    if (this.#isFirstLine && head.startsWith(byteOrderMark)) {
      line = withoutStart(line, byteOrderMark.length);
      length -= byteOrderMark.length;
      head = head.slice(byteOrderMark.length);
    }
    this.#isFirstLine = false;
    if (length === 0) {
      if (this.#dataLines === 0) this.#type = "";
      return this.#dataLines > 0;
    }
    if (head.startsWith("data:") || (head === "data" && length === 4)) {
      if (this.#dataLines > 0) this.#data.push(newline);
      const value = withoutStart(line, head[5] === " " ? 6 : 5);
      for (const piece of value) this.#data.push(piece);
      this.#dataBytes += length;
      this.#dataLines += 1;
    } else if (head.startsWith("event:")) {
      this.#type = Buffer.concat(withoutStart(line, head[6] === " " ? 7 : 6)).toString("utf8");
    } else if (head === "event" && length === 5) {
      this.#type = "";
    }
    return false;
  }

  #takeEvent(): T {
    const event = { type: this.#type || "message", data: this.#data };
    this.#type = "";
    this.#data = [];
    this.#dataBytes = 0;
    this.#dataLines = 0;
    return this.#read(event);
  }
}

/** The first bytes of a line, one character each. */
function headOf(line: readonly Uint8Array[]): string {
  let head = "";
  for (const piece of line) {
    head += String.fromCharCode(...piece.subarray(0, headBytes - head.length));
    if (head.length === headBytes) break;
  }
  return head;
}

/** The line without its first `count` bytes. */
function withoutStart(line: readonly Uint8Array[], count: number): Uint8Array[] {
  const rest: Uint8Array[] = [];
  let left = count;
  for (const piece of line) {
    if (piece.length > left) rest.push(left === 0 ? piece : piece.subarray(left));
    left = Math.max(0, left - piece.length);
  }
  return rest;
}
