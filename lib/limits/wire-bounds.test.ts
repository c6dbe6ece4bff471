import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateKeyRequestSchema, KeyScope } from "../../gen/media/account/v1/key_pb.ts";
import { GenerateRequestSchema } from "../../gen/media/image/v1/image_pb.ts";
import { type WireBounds, WireScanner } from "./wire-bounds.ts";

const scanner = new WireScanner();
const bounds: WireBounds = { maxElements: 100, maxTextBytes: 1000, maxDepth: 8 };
const times = (hex: string, count: number) => Buffer.from(hex.repeat(count), "hex");

/** A field of bytes: its tag, its length, and what is in it. */
function field(tag: readonly number[], content: Uint8Array): Buffer {
  const length: number[] = [];
  let rest = content.length;
  for (; rest > 0x7f; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
  return Buffer.concat([Buffer.from([...tag, ...length, rest]), content]);
}

const order = (count: number) => field([0x72], times("0a00", count));
const options = (count: number) => field([0x72], times("32040a001200", count));
/** `trace.a`: lists within each other. */
function nestedTrace(levels: number): Buffer {
  let value: Buffer = Buffer.from([0x32, 0]);
  for (let level = 0; level < levels; level += 1) value = field([0x32], field([0x0a], value));
  return field([0x8a, 0x01], field([0x0a], field([0x12], value)));
}

test("a message that a client would send has no fault", () => {
  const request = create(GenerateRequestSchema, {
    model: "acme/brush",
    prompt: "a boat",
    inputReferences: [{ source: { case: "data", value: new Uint8Array(100_000) } }],
    n: 2,
    seed: -1n,
    provider: { order: ["acme"], options: { acme: { style: "plain", list: [1, { two: null }] } } },
    trace: { a: [1, 2, 3] },
  });
  expect(
    scanner.findFault(GenerateRequestSchema, toBinary(GenerateRequestSchema, request), bounds),
  ).toBeUndefined();
});

test.for<[string, (count: number) => Buffer, number]>([
  ["items of a list of messages", (count) => times("2a00", count), 1],
  ["fields that nobody knows", (count) => times("f80700", count), 1],
  ["one text again and again", (count) => times("0a00", count), 1],
  ["one message again and again", (count) => times("8a0100", count), 1],
  ["items of a list of texts, in another message", (count) => order(count - 1), 1],
  ["entries of a map", (count) => options((count - 1) / 3), 3],
])("%s are counted up to the bound", ([, bytes, each]) => {
  const most = 1 + Math.floor((bounds.maxElements - 1) / each) * each;
  expect(scanner.findFault(GenerateRequestSchema, bytes(most), bounds)).toBeUndefined();
  expect(scanner.findFault(GenerateRequestSchema, bytes(most + each), bounds)).toMatch(
    /more than 100 values/,
  );
});

test("numbers count one by one in a list, packed or not, and not at all by themselves", () => {
  const scopes = (count: number) => Array<KeyScope>(count).fill(KeyScope.SPEECH);
  const packed = (count: number) =>
    toBinary(CreateKeyRequestSchema, create(CreateKeyRequestSchema, { scopes: scopes(count) }));
  expect(scanner.findFault(CreateKeyRequestSchema, packed(100), bounds)).toBeUndefined();
  expect(scanner.findFault(CreateKeyRequestSchema, packed(101), bounds)).toMatch(/more than 100 values/);
  const single = times("1801", 101);
  expect(scanner.findFault(CreateKeyRequestSchema, single, bounds)).toMatch(/more than 100 values/);
  expect(scanner.findFault(GenerateRequestSchema, times("3001", 5000), bounds)).toBeUndefined();
  expect(scanner.findFault(GenerateRequestSchema, times("3001", 200_000), bounds)).toMatch(/100000 fields/);
});

test("texts and depth have bounds", () => {
  const prompt = (bytes: number) => field([0x12], Buffer.alloc(bytes, "a"));
  expect(scanner.findFault(GenerateRequestSchema, prompt(1000), bounds)).toBeUndefined();
  expect(scanner.findFault(GenerateRequestSchema, prompt(1001), bounds)).toMatch(/1000 bytes of text/);
  expect(scanner.findFault(GenerateRequestSchema, nestedTrace(1), bounds)).toBeUndefined();
  expect(scanner.findFault(GenerateRequestSchema, nestedTrace(20), bounds)).toMatch(/nested deeper than 8/);
});

test.for([
  ["an end amid a number", "0a"],
  ["an end amid a text", "0a05616263"],
  ["an end amid a fixed number", "09000000"],
  ["a message longer than what it is in", "72030a0561"],
  ["a number of eleven bytes", "30ffffffffffffffffffff01"],
  ["a group", "0b0c"],
  ["an unknown kind", "0f"],
])("%s is a fault", ([, hex = ""]) => {
  expect(scanner.findFault(GenerateRequestSchema, Buffer.from(hex, "hex"), bounds)).toBeDefined();
});
