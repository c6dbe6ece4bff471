import { Code, ConnectError } from "@connectrpc/connect";
import { createAsyncIterable, transformSplitEnvelope } from "@connectrpc/connect/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { GenerateResponseSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { bytesTagOf, encodeEnvelope, encodeFieldHead } from "./envelope.ts";
import { EnvelopeParser, type EnvelopeSink } from "./envelope-parser.ts";

const { imageData } = GenerateResponseSchema.field;
const tag = bytesTagOf(imageData) ?? 0;
const maxMessageBytes = 100_000;

/** What came out, with the pieces of a field put together. */
class Collected implements EnvelopeSink {
  readonly items: [kind: "message" | "field" | "end", hex: string][] = [];
  readonly pieces: Uint8Array[] = [];
  #field: Uint8Array[] = [];

  message(bytes: Uint8Array): void {
    this.items.push(["message", hexOf(bytes)]);
  }

  piece(bytes: Uint8Array, isLast: boolean): void {
    this.pieces.push(bytes);
    this.#field.push(bytes);
    if (!isLast) return;
    this.items.push(["field", hexOf(Buffer.concat(this.#field))]);
    this.#field = [];
  }

  end(json: Uint8Array): void {
    this.items.push(["end", hexOf(json)]);
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function parse(chunks: readonly Uint8Array[], known: { field?: typeof imageData } = { field: imageData }) {
  const collected = new Collected();
  const parser = new EnvelopeParser({ maxMessageBytes, ...known }, collected);
  for (const chunk of chunks) parser.push(chunk);
  parser.finish();
  return collected;
}

function cut(bytes: Uint8Array, sizes: readonly number[]): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  let at = 0;
  for (const size of sizes) {
    chunks.push(bytes.subarray(at, at + size));
    at += size;
  }
  return [...chunks, bytes.subarray(at)];
}

const filled = (length: number) => new Uint8Array(length).fill(tag);
const fieldOf = (bytes: Uint8Array) => Buffer.concat([encodeFieldHead(tag, bytes.length).subarray(5), bytes]);
/** Fields, what looks like one for a while, and anything else. */
const anyMessage = fc.oneof(
  fc.uint8Array({ maxLength: 20 }),
  fc.constantFrom(0, 1, 127, 128, 300, 16_384, 70_000).map((length) => fieldOf(filled(length))),
  fc
    .tuple(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ minLength: 1, maxLength: 9 }))
    .map(([bytes, rest]) => Buffer.concat([fieldOf(bytes), rest])),
  fc
    .uint8Array({ maxLength: 9 })
    .map((rest) => Buffer.from([tag, ...rest.map((byte) => byte | 0x80), ...rest])),
);
const anyEnvelope = fc.tuple(fc.constantFrom(0, 0, 0, 2, 4, 0x82), anyMessage);
const anyCuts = fc.array(fc.oneof(fc.nat(7), fc.nat(500), fc.nat(70_000)), { maxLength: 60 });

test("gives what the library's decoder gives, however the body is cut", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyEnvelope, { maxLength: 8 }), anyCuts, async (envelopes, cuts) => {
      const body = Buffer.concat(envelopes.map(([flags, message]) => encodeEnvelope(flags, message)));
      const split = transformSplitEnvelope(maxMessageBytes)(createAsyncIterable([body]));
      const expected = await Array.fromAsync(split);
      const { items } = parse(cut(body, cuts));
      const asMessages = items.map(([kind, hex]) =>
        kind === "field" ? ["message", hexOf(fieldOf(Buffer.from(hex, "hex")))] : [kind, hex],
      );
      expect(asMessages).toEqual(
        expected.map(({ flags, data }) => [(flags & 2) === 2 ? "end" : "message", hexOf(data)]),
      );
      const inPieces = (flags: number, message: Uint8Array) =>
        flags === 0 && message[0] === tag && isField(message);
      const fields = envelopes.filter(([flags, message]) => inPieces(flags, message));
      expect(items.filter(([kind]) => kind === "field")).toHaveLength(fields.length);
    }),
  );
});

/** By another way than the parser's. */
function isField(message: Uint8Array): boolean {
  const length = message.subarray(1).findIndex((byte) => byte < 0x80) + 1;
  if (length === 0 || length > 5) return false;
  const stated = message
    .subarray(1, 1 + length)
    .reduce((sum, byte, index) => sum + (byte & 0x7f) * 2 ** (7 * index), 0);
  return stated === message.length - 1 - length;
}

test("bytes of the field, and messages within a chunk, are views of what was pushed", () => {
  const bytes = filled(5000);
  const body = Buffer.concat([encodeFieldHead(tag, bytes.length), bytes]);
  const { pieces } = parse(cut(body, [100, 1000]));
  expect(pieces.map(({ length }) => length)).toEqual([92, 1000, 3908]);
  expect(pieces.every(({ buffer }) => buffer === body.buffer)).toBe(true);
  const given: Uint8Array[] = [];
  const sink = { message: (message: Uint8Array) => void given.push(message), piece() {}, end() {} };
  const other = encodeEnvelope(0, filled(6000));
  new EnvelopeParser({ maxMessageBytes }, sink).push(other);
  expect(given.map(({ buffer }) => buffer === other.buffer)).toEqual([true]);
});

test("a field without bytes gives one empty piece", () => {
  const { items, pieces } = parse([encodeFieldHead(tag, 0)]);
  expect([items, pieces]).toEqual([[["field", ""]], [new Uint8Array(0)]]);
});

test("without a field all messages are whole", () => {
  const body = encodeEnvelope(0, fieldOf(filled(3)));
  expect(parse(cut(body, [6]), {}).items).toEqual([["message", hexOf(fieldOf(filled(3)))]]);
});

test.for([0, 2])("a message with flags %i above the limit is refused by its head", (flags) => {
  const head = Buffer.alloc(5, flags);
  head.writeUInt32BE(maxMessageBytes + 1, 1);
  expect(() => parse([head])).toThrow(
    new ConnectError(
      "message size 100001 is larger than configured readMaxBytes 100000",
      Code.ResourceExhausted,
    ),
  );
  head.writeUInt32BE(0xffff_ffff, 1);
  expect(() => parse([head])).toThrow(ConnectError);
});

test("a message at the limit is taken", () => {
  expect(parse([encodeEnvelope(0, filled(maxMessageBytes))]).items).toHaveLength(1);
});

test("a compressed message is refused: nobody asked for one", () => {
  const error = new ConnectError(
    "received compressed envelope, but do not know how to decompress",
    Code.Internal,
  );
  expect(() => parse([encodeEnvelope(1, filled(3))])).toThrow(error);
});

test("an end within an envelope is an error wherever it is", () => {
  const body = Buffer.concat([encodeFieldHead(tag, 300), filled(300)]);
  for (const bytes of [1, 4, 5, 6, 7, 8, 9, 307])
    expect(() => parse([body.subarray(0, bytes)]), `${bytes}`).toThrow("incomplete envelope");
  expect(parse([body]).items).toHaveLength(1);
});
