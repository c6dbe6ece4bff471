/**
 * Sends a large field of bytes as it lies in memory; the stock encoder would copy it three times.
 *
 * 1. A handler leaves the field empty and hands its bytes to the call's sender. The encoder makes an envelope of the
 *    message without them, and on its way out that envelope is replaced by one that holds them. On the wire stands
 *    what the encoder would have written.
 * 2. Only streams in binary without compression are written so; every other answer, and every message above the limit,
 *    goes to the encoder whole.
 * 3. Envelopes leave in the order of their messages, so the bytes that have waited longest belong to the first envelope
 *    that lacks some.
 */
import type { DescField } from "@bufbuild/protobuf";
import { createContextKey, createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";

/** Gives what a message has to hold in place of these bytes, as its only field, when it is yielded next. */
export type SendBytes = (bytes: Uint8Array) => Uint8Array;

const noBytes = new Uint8Array(0);
/** Fields up to this number have a tag of one byte. */
const maxFieldNumber = 15;
const wireTypeOfBytes = 2;

const outgoingBytesKey = createContextKey<OutgoingBytes | undefined>(undefined, {
  description: "bytes that go out uncopied",
});

/** The sender of one field of the answer, in messages of at most so many bytes, to be used by the call's handler. */
export function bytesSender(context: HandlerContext, field: DescField, maxMessageBytes: number): SendBytes {
  const outgoing = context.values.get(outgoingBytesKey);
  if (outgoing === undefined || !isPlainBinary(context.responseHeader) || field.number > maxFieldNumber) {
    return (bytes) => bytes; // 2.
  }
  return outgoing.open(field.number, maxMessageBytes);
}

/** The same handler, in which senders spare their bytes the copies. */
export function withUncopiedBytes(handler: UniversalHandler): UniversalHandler {
  const handle: UniversalHandler = Object.assign(async (request: Parameters<UniversalHandler>[0]) => {
    const outgoing = new OutgoingBytes();
    const contextValues = request.contextValues ?? createContextValues();
    contextValues.set(outgoingBytesKey, outgoing);
    const response = await handler({ ...request, contextValues });
    if (!outgoing.isOpen || response.body === undefined) return response;
    return { ...response, body: new UncopiedBody(response.body, outgoing) };
  }, handler);
  return handle;
}

function isPlainBinary(header: Headers): boolean {
  const isCompressed = header.has("connect-content-encoding") || header.has("grpc-encoding");
  return !isCompressed && (header.get("content-type") ?? "").endsWith("+proto");
}

/** Bytes of one answer on their way from its handler to its body. */
class OutgoingBytes {
  readonly #waiting: Uint8Array[] = [];
  #tag = 0;

  get isOpen(): boolean {
    return this.#tag !== 0;
  }

  open(fieldNumber: number, maxMessageBytes: number): SendBytes {
    this.#tag = (fieldNumber << 3) | wireTypeOfBytes;
    return (bytes) => {
      const messageBytes = 1 + varint(bytes.length).length + bytes.length;
      if (bytes.length === 0 || messageBytes > maxMessageBytes) return bytes; // 2.
      this.#waiting.push(bytes); // 1.
      return noBytes;
    };
  }

  /** What goes out in place of an envelope; undefined for one that lacks no bytes. */
  fill(envelope: Uint8Array): { readonly head: Uint8Array; readonly bytes: Uint8Array } | undefined {
    if (this.#waiting.length === 0 || !this.#isEmptyField(envelope)) return undefined;
    const bytes = this.#waiting.shift() ?? noBytes; // 3.
    const field = [this.#tag, ...varint(bytes.length)];
    const head = Buffer.from([0, 0, 0, 0, 0, ...field]);
    head.writeUInt32BE(field.length + bytes.length, 1);
    return { head, bytes };
  }

  /** Whether its message, not compressed, is the field with a length of 0. */
  #isEmptyField(envelope: Uint8Array): boolean {
    const empty = [0, 0, 0, 0, 2, this.#tag, 0];
    return envelope.length === empty.length && empty.every((byte, index) => envelope[index] === byte);
  }
}

/** A body in which the bytes that wait take their places. */
class UncopiedBody implements AsyncIterableIterator<Uint8Array> {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #outgoing: OutgoingBytes;
  #next: Uint8Array | undefined;

  constructor(body: AsyncIterable<Uint8Array>, outgoing: OutgoingBytes) {
    this.#source = body[Symbol.asyncIterator]();
    this.#outgoing = outgoing;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const next = this.#next;
    this.#next = undefined;
    if (next !== undefined) return { done: false, value: next };
    const result = await this.#source.next();
    const filled = result.done ? undefined : this.#outgoing.fill(result.value);
    if (filled === undefined) return result;
    this.#next = filled.bytes;
    return { done: false, value: filled.head };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    return (await this.#source.return?.()) ?? { done: true, value: undefined };
  }

  async throw(thrown: unknown): Promise<IteratorResult<Uint8Array>> {
    if (this.#source.throw === undefined) throw thrown;
    return await this.#source.throw(thrown);
  }
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  bytes.push(rest);
  return bytes;
}
