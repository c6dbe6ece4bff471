/**
 * Reads envelopes out of what a connection brings, as it brings it: no stream, no promise, no copy where none is needed.
 *
 * 1. How long a message is has been checked before anything is allocated for it.
 * 2. Of a message that is nothing but the field of bytes which the parser knows, the bytes are given as they lie in the
 *    chunks that were pushed. Whether a message is that shows in its first two to six bytes.
 * 3. Every other message is given whole: a view of its chunk where it lies in one, else gathered.
 * 4. Flags that nobody knows are passed over, as by the library.
 */
import type { DescField } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { endStreamFlag } from "./connect-protocol.ts";
import { bytesTagOf, compressedFlag, envelopeHeadBytes } from "./envelope.ts";

/** Takes what comes out of envelopes, in order. What it is given are views of the chunks: they must not be written to. */
export interface EnvelopeSink {
  /** A whole message, to be decoded. */
  message(bytes: Uint8Array): void;
  /** Bytes of a message that is the field alone, in pieces of any size; a field without any gives one empty piece. */
  piece(bytes: Uint8Array, isLast: boolean): void;
  /** The JSON of an envelope that ends the stream. */
  end(json: Uint8Array): void;
}

/** What a parser bears and knows. */
export interface EnvelopeParserOptions {
  /** Of a message, whatever it is. */
  readonly maxMessageBytes: number;
  /** The field whose bytes are given in pieces; none unless given, and none whose number is above 15. */
  readonly field?: DescField | undefined;
}

type State = "head" | "tag" | "length" | "bytes" | "message";

/** Of the number that states a field's length, a varint of at most 32 bits. */
const maxLengthBytes = 5;
/** Tag and length. */
const shortestFieldMessage = 2;
const noBytes = new Uint8Array(0);

/** Reads the envelopes of one body. Once it has thrown it must not be used again. */
export class EnvelopeParser {
  readonly #sink: EnvelopeSink;
  readonly #maxMessageBytes: number;
  readonly #fieldTag: number | undefined;
  /** The head of an envelope, and then what has come of the tag and the length that follow it. */
  readonly #start = Buffer.allocUnsafe(envelopeHeadBytes + 1 + maxLengthBytes);
  #startBytes = 0;
  #state: State = "head";
  #flags = 0;
  #messageBytes = 0;
  /** Bytes of a field or of a message that are still to come. */
  #missing = 0;
  #gathered: Buffer | undefined;

  constructor({ maxMessageBytes, field }: EnvelopeParserOptions, sink: EnvelopeSink) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#fieldTag = field === undefined ? undefined : bytesTagOf(field);
    this.#sink = sink;
  }

  /** Gives the sink what a chunk has completed. Throws ConnectError for what can't be read, and what the sink throws. */
  push(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) at = this.#step(chunk, at);
  }

  /** The body has ended. Throws ConnectError where that is within an envelope. */
  finish(): void {
    if (this.#state === "head" && this.#startBytes === 0) return;
    throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
  }

  /** Takes what it can from there on; returns where it stopped. */
  #step(chunk: Uint8Array, at: number): number {
    switch (this.#state) {
      case "head":
        return this.#readHead(chunk, at);
      case "tag":
      case "length":
        this.#readStart(chunk[at] ?? 0);
        return at + 1;
      case "bytes":
        return this.#readBytes(chunk, at);
      case "message":
        return this.#readMessage(chunk, at);
    }
  }

  #readHead(chunk: Uint8Array, at: number): number {
    const taken = Math.min(envelopeHeadBytes - this.#startBytes, chunk.length - at);
    for (let index = 0; index < taken; index += 1) {
      this.#start[this.#startBytes + index] = chunk[at + index] ?? 0;
    }
    this.#startBytes += taken;
    if (this.#startBytes === envelopeHeadBytes) this.#beginMessage();
    return at + taken;
  }

  #beginMessage(): void {
    this.#flags = this.#start[0] ?? 0;
    this.#messageBytes = this.#start.readUInt32BE(1);
    if (this.#messageBytes > this.#maxMessageBytes) throw this.#tooLarge(); // 1.
    if ((this.#flags & compressedFlag) !== 0) {
      const message = "received compressed envelope, but do not know how to decompress";
      throw new ConnectError(message, Code.Internal);
    }
    const mayBeField = this.#flags === 0 && this.#messageBytes >= shortestFieldMessage;
    if (mayBeField && this.#fieldTag !== undefined) this.#state = "tag";
    else this.#gatherMessage();
  }

  /** The library's words. */
  #tooLarge(): ConnectError {
    const sizes = `${this.#messageBytes} is larger than configured readMaxBytes ${this.#maxMessageBytes}`;
    return new ConnectError(`message size ${sizes}`, Code.ResourceExhausted);
  }

  /** The tag of a field, or a byte of its length. */
  #readStart(byte: number): void {
    this.#start[this.#startBytes] = byte;
    this.#startBytes += 1;
    const prefixBytes = this.#startBytes - envelopeHeadBytes;
    if (this.#state === "tag") {
      if (byte === this.#fieldTag) this.#state = "length";
      else this.#gatherMessage();
    } else if (byte <= 0x7f) {
      const fieldBytes = this.#messageBytes - prefixBytes;
      if (fieldLengthOf(this.#start, this.#startBytes) === fieldBytes) this.#beginField(fieldBytes);
      else this.#gatherMessage();
    } else if (prefixBytes > maxLengthBytes || prefixBytes === this.#messageBytes) {
      this.#gatherMessage();
    }
  }

  #beginField(fieldBytes: number): void {
    this.#state = "bytes";
    this.#missing = fieldBytes;
    if (fieldBytes > 0) return;
    this.#beginHead();
    this.#sink.piece(noBytes, true);
  }

  #readBytes(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#missing);
    this.#missing -= end - at;
    const isLast = this.#missing === 0;
    if (isLast) this.#beginHead();
    this.#sink.piece(chunk.subarray(at, end), isLast); // 2.
    return end;
  }

  /** The message is to be given whole; what was read of it to find that out is the first of it. */
  #gatherMessage(): void {
    this.#state = "message";
    const prefixBytes = this.#startBytes - envelopeHeadBytes;
    this.#missing = this.#messageBytes - prefixBytes;
    if (prefixBytes > 0) {
      this.#gathered = Buffer.allocUnsafe(this.#messageBytes);
      this.#start.copy(this.#gathered, 0, envelopeHeadBytes, this.#startBytes);
    }
    if (this.#missing === 0) this.#giveMessage(this.#gathered ?? noBytes);
  }

  #readMessage(chunk: Uint8Array, at: number): number {
    const end = Math.min(chunk.length, at + this.#missing);
    if (this.#gathered === undefined && end - at === this.#messageBytes) {
      this.#giveMessage(chunk.subarray(at, end)); // 3.
      return end;
    }
    this.#gathered ??= Buffer.allocUnsafe(this.#messageBytes);
    this.#gathered.set(chunk.subarray(at, end), this.#messageBytes - this.#missing);
    this.#missing -= end - at;
    if (this.#missing === 0) this.#giveMessage(this.#gathered);
    return end;
  }

  #giveMessage(bytes: Uint8Array): void {
    this.#gathered = undefined;
    const isEnd = (this.#flags & endStreamFlag) !== 0;
    this.#beginHead();
    if (isEnd) this.#sink.end(bytes);
    else this.#sink.message(bytes);
  }

  #beginHead(): void {
    this.#state = "head";
    this.#startBytes = 0;
  }
}

/** What the varint behind head and tag says, which ends there. */
function fieldLengthOf(start: Uint8Array, end: number): number {
  let length = 0;
  for (let at = end - 1; at > envelopeHeadBytes; at -= 1) length = length * 0x80 + ((start[at] ?? 0) & 0x7f);
  return length;
}
