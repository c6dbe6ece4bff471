import { create, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope as encodeByLibrary } from "@connectrpc/connect/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { GenerateResponseSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { bytesTagOf, encodeEnvelope, encodeFieldHead, fieldMessageBytes, varintBytes } from "./envelope.ts";

const { imageData } = GenerateResponseSchema.field;
const tag = bytesTagOf(imageData) ?? 0;

const lengths = [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152];

test.for(lengths)("a field of %i bytes behind its head is what the library writes", (length) => {
  const value = new Uint8Array(length).fill(7);
  const message = toBinary(
    GenerateResponseSchema,
    create(GenerateResponseSchema, { frame: { case: "imageData", value } }),
  );
  const expected = encodeByLibrary(0, message);
  const head = encodeFieldHead(tag, length);
  expect(fieldMessageBytes(length)).toBe(message.length);
  expect(Buffer.concat([head, value]).equals(expected)).toBe(true);
});

test("the longest field has a head of eleven bytes", () => {
  expect(varintBytes(0xffff_ff00)).toBe(5);
  expect(encodeFieldHead(tag, 0xffff_ff00).toString("hex")).toBe(`00ffffff06${tag.toString(16)}80feffff0f`);
});

test("any message is put into an envelope as the library does it", () => {
  fc.assert(
    fc.property(fc.nat(255), fc.uint8Array(), (flags, message) => {
      expect([...encodeEnvelope(flags, message)]).toEqual([...encodeByLibrary(flags, message)]);
    }),
  );
});

test("a field whose tag takes two bytes has none of one", () => {
  expect(bytesTagOf({ ...imageData, number: 15 })).toBe(0x7a);
  expect(bytesTagOf({ ...imageData, number: 16 })).toBeUndefined();
});
