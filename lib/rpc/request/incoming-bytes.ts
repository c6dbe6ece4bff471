/**
 * Receives a large field of bytes in the pieces that its connection gives it in; the stock decoder would gather each
 * message in a buffer of its own first.
 *
 * 1. Of an envelope whose message has nothing but that field, the decoder gets one with the field empty. When that
 *    message comes out of the decoder, the field's bytes follow in its place, a message for each piece.
 * 2. Every other envelope, and one that is compressed, above the limit or malformed, goes to the decoder as it came.
 * 3. One side reads the body at a time: the decoder between such fields, `next` within one.
 * 4. What goes wrong within a field is thrown at the decoder, and its caller gets what comes out of that.
 */
import type { DescField, Message } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";

const envelopeHeaderBytes = 5;
/** Of the number that states a field's length, a varint of at most 32 bits. */
const maxLengthBytes = 5;
/** Tag and length. */
const shortestMessageBytes = 2;
const wireTypeOfBytes = 2;
const noBytes: Uint8Array = new Uint8Array(0);

/** A field of bytes to be received in pieces, and the longest message that may hold it. */
export interface PiecewiseField {
  readonly field: DescField;
  readonly maxMessageBytes: number;
}

/**
 * A transport whose streams of messages with this field give it in pieces, each in a message of its own; everything
 * else is as the stock transport has it, which `create` makes over an HTTP client.
 */
export function createPiecewiseTransport(
  piecewise: PiecewiseField,
  httpClient: UniversalClientFn,
  create: (httpClient: UniversalClientFn) => Transport,
): Transport {
  const stock = create(httpClient);
  return {
    unary: stock.unary,
    async stream(method, ...call) {
      if (method.output.typeName !== piecewise.field.parent.typeName)
        return await stock.stream(method, ...call);
      const incoming = new IncomingBytes(piecewise);
      const transport = create(async (request) => {
        const response = await httpClient(request);
        return { ...response, body: incoming.withhold(response.body) };
      });
      const response = await transport.stream(method, ...call);
      return { ...response, message: incoming.restore(response.message) };
    },
  };
}

/** What the first bytes of an envelope say: whether its message is the field alone, and where what ends. */
interface Head {
  readonly envelopeBytes: number;
  /** All before the field's bytes; 0 where the message is something else. */
  readonly prefixBytes: number;
}

/** The body of one answer on its way to the decoder, and the bytes that are kept from it. */
class IncomingBytes {
  readonly #field: DescField;
  readonly #tag: number;
  readonly #maxMessageBytes: number;
  #source: AsyncIterator<Uint8Array> | undefined;
  /** Read from the source and not given on yet. */
  #rest = noBytes;
  /** Bytes that the field still lacks; 0 outside of one. */
  #missing = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor({ field, maxMessageBytes }: PiecewiseField) {
    this.#field = field;
    this.#tag = (field.number << 3) | wireTypeOfBytes;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** What the decoder gets of a body. */
  withhold(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    const source = body[Symbol.asyncIterator]();
    this.#source = source;
    const envelopes = this.#envelopes();
    const iterator: AsyncIterator<Uint8Array> = {
      next: () => envelopes.next(),
      throw: (thrown) => source.throw?.(thrown) ?? Promise.reject(thrown),
    };
    return { [Symbol.asyncIterator]: () => iterator };
  }

  /** Messages of the decoder, with what it did not get put back. */
  restore<T extends Message>(messages: AsyncIterable<T>): AsyncIterable<T> {
    const decoded = messages[Symbol.asyncIterator]();
    const next = async (): Promise<IteratorResult<T>> => {
      for (;;) {
        const piece = this.#missing > 0 ? await this.#readPiece() : undefined; // 3.
        if (piece !== undefined) return { done: false, value: this.#messageOf(piece) as T }; // 1.
        const result = await decoded.next();
        if (this.#missing === 0) return result;
      }
    };
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  async *#envelopes(): AsyncGenerator<Uint8Array, void> {
    while (await this.#fill()) {
      const { envelopeBytes, prefixBytes } = await this.#readHead();
      if (prefixBytes > 0) {
        this.#take(prefixBytes);
        this.#missing = envelopeBytes - prefixBytes;
        yield Uint8Array.of(0, 0, 0, 0, 2, this.#tag, 0); // 1.
        if (this.#failure !== undefined) throw this.#failure.error; // 4.
        continue;
      }
      for (let left = envelopeBytes; left > 0 && (await this.#fill()); ) {
        const piece = this.#take(left);
        left -= piece.length;
        yield piece;
      }
    }
  }

  /** At an end within the head: what there is, as an envelope of an unknown kind. */
  async #readHead(): Promise<Head> {
    for (;;) {
      const head = parseHead(this.#rest, this.#tag, this.#maxMessageBytes);
      if (head !== undefined) return head;
      const before = this.#rest;
      this.#rest = noBytes;
      const isMore = await this.#fill();
      this.#rest = Buffer.concat([before, this.#rest]);
      if (!isMore) return { envelopeBytes: before.length, prefixBytes: 0 };
    }
  }

  async #readPiece(): Promise<Uint8Array | undefined> {
    try {
      if (!(await this.#fill())) {
        throw new ConnectError("protocol error: incomplete envelope", Code.InvalidArgument);
      }
      const piece = this.#take(this.#missing);
      this.#missing -= piece.length;
      return piece;
    } catch (error) {
      this.#failure = { error };
      this.#missing = 0;
      return undefined;
    }
  }

  /** Makes sure that something is there to take; false at the end of the body. */
  async #fill(): Promise<boolean> {
    while (this.#rest.length === 0) {
      const result = await this.#source?.next();
      if (result === undefined || result.done) return false;
      this.#rest = result.value;
    }
    return true;
  }

  #take(maxBytes: number): Uint8Array {
    const taken = this.#rest.subarray(0, maxBytes);
    this.#rest = this.#rest.subarray(taken.length);
    return taken;
  }

  #messageOf(bytes: Uint8Array): Message {
    const message = reflect(this.#field.parent);
    message.set(this.#field, bytes);
    return message.message;
  }
}

/** Undefined where more bytes are needed to decide. */
function parseHead(bytes: Uint8Array, tag: number, maxMessageBytes: number): Head | undefined {
  if (bytes.length < envelopeHeaderBytes) return undefined;
  const messageBytes = new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  const envelopeBytes = envelopeHeaderBytes + messageBytes;
  const other: Head = { envelopeBytes, prefixBytes: 0 };
  if (bytes[0] !== 0 || messageBytes < shortestMessageBytes || messageBytes > maxMessageBytes) return other; // 2.
  const found = bytes[envelopeHeaderBytes];
  if (found !== tag) return found === undefined ? undefined : other;
  let fieldBytes = 0;
  for (let at = 0; at < maxLengthBytes; at += 1) {
    const byte = bytes[envelopeHeaderBytes + 1 + at];
    if (byte === undefined) return undefined;
    fieldBytes += (byte & 0x7f) * 2 ** (7 * at);
    if (byte > 0x7f) continue;
    const prefixBytes = envelopeHeaderBytes + 2 + at;
    return prefixBytes + fieldBytes === envelopeBytes ? { envelopeBytes, prefixBytes } : other;
  }
  return other;
}
