/**
 * Sends the large parts of a request as they lie in memory; the stock encoder would copy them three times, each time all
 * at once.
 *
 * 1. A message is encoded without its parts, and they are appended to it in its envelope, in pieces: messages may be
 *    encoded in parts, which put together are the whole (protobuf encoding, "last one wins" and repeated fields).
 * 2. A message that would be above the limit with its parts goes to the encoder whole, which refuses it.
 * 3. Interceptors see the message without its parts.
 */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import type { UniversalClientFn } from "@connectrpc/connect/protocol";

const pieceBytes = 256 << 10;

/** How the requests of one type come apart. */
export interface RequestParts {
  readonly type: DescMessage;
  /** The message without its large parts, and these, each as it stands in the encoding of the whole. */
  split(message: Message): { readonly rest: Message; readonly parts: readonly Uint8Array[] };
}

/** A transport that sends such messages of streams in parts; everything else is as `create` makes it. */
export function createPartwiseTransport(
  { type, split }: RequestParts,
  { httpClient, maxMessageBytes }: { httpClient: UniversalClientFn; maxMessageBytes: number },
  create: (httpClient: UniversalClientFn) => Transport,
): Transport {
  const stock = create(httpClient);
  return {
    unary: stock.unary,
    async stream(method, signal, timeoutMs, header, input, contextValues) {
      if (method.input.typeName !== type.typeName) {
        return await stock.stream(method, signal, timeoutMs, header, input, contextValues);
      }
      const waiting: (readonly Uint8Array[])[] = [];
      const transport = create((request) =>
        httpClient({ ...request, body: withParts(request.body, waiting) }),
      );
      async function* withoutParts(): AsyncGenerator<Message> {
        for await (const message of input as AsyncIterable<Message>) {
          const { rest, parts } = split(message);
          const isWithin = sizeOf(parts) <= maxMessageBytes; // 2.
          waiting.push(isWithin ? parts : []);
          yield isWithin ? rest : message; // 3.
        }
      }
      const messages = withoutParts() as typeof input;
      return await transport.stream(method, signal, timeoutMs, header, messages, contextValues);
    },
  };
}

/** Envelopes, each followed by the parts that wait for it. */
async function* withParts(
  envelopes: AsyncIterable<Uint8Array> | undefined,
  waiting: (readonly Uint8Array[])[],
): AsyncGenerator<Uint8Array> {
  for await (const envelope of envelopes ?? []) {
    const parts = waiting.shift() ?? [];
    const head = Buffer.from(envelope);
    head.writeUInt32BE(head.readUInt32BE(1) + sizeOf(parts), 1); // 1.
    yield head;
    for (const part of parts) {
      for (let from = 0; from < part.length; from += pieceBytes) {
        yield part.subarray(from, from + pieceBytes);
      }
    }
  }
}

function sizeOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}
