import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope as encodeByLibrary } from "@connectrpc/connect/protocol";
import fc from "fast-check";
import { expect, test } from "vitest";
import { GenerateResponseSchema } from "../../../gen/media/image/v1/image_pb.ts";
import {
  ListSpeechModelsResponseSchema,
  SynthesizeResponseSchema,
} from "../../../gen/media/speech/v1/speech_pb.ts";
import { AnswerEncoder } from "./answer-encoder.ts";

type Frame = NonNullable<MessageInitShape<typeof GenerateResponseSchema>["frame"]>;

const encoder = new AnswerEncoder(GenerateResponseSchema, 100_000);
const filled = (length: number) => new Uint8Array(length).fill(7);
const anyFrame = fc.oneof(
  fc
    .constantFrom(0, 1, 2, 127, 128, 16_383, 16_384, 70_000)
    .map((length): Frame => ({ case: "imageData", value: filled(length) })),
  fc.constantFrom<Frame>(
    { case: undefined },
    { case: "textChunk", value: {} },
    { case: "textChunk", value: { text: "x" } },
    { case: "partial", value: { data: filled(9) } },
    { case: "finished", value: {} },
  ),
);

test("a message in its envelope is what the library writes", () => {
  fc.assert(
    fc.property(anyFrame, fc.boolean(), (frame, isExtended) => {
      const message = create(GenerateResponseSchema, { frame });
      if (isExtended) message.$unknown = [{ no: 99, wireType: 0, data: Uint8Array.of(1) }];
      const expected = encodeByLibrary(0, toBinary(GenerateResponseSchema, message));
      expect(Buffer.concat(encoder.encodeEnvelope(message)).equals(expected)).toBe(true);
    }),
  );
});

test("the bytes of a message that has nothing else are given as they are", () => {
  const value = filled(70_000);
  const image = create(GenerateResponseSchema, { frame: { case: "imageData", value } });
  expect(encoder.encodeEnvelope(image)[1]).toBe(value);
  const speech = new AnswerEncoder(SynthesizeResponseSchema, 100_000);
  const audio = create(SynthesizeResponseSchema, { frame: { case: "audio", value } });
  expect(speech.encodeEnvelope(audio)[1]).toBe(value);
});

test("a message of other fields is encoded whole", () => {
  const models = new AnswerEncoder(ListSpeechModelsResponseSchema, 100);
  const message = create(ListSpeechModelsResponseSchema, { models: [{ id: "acme/one" }] });
  expect(Buffer.concat(models.encodeEnvelope(message)).subarray(5)).toEqual(
    Buffer.from(models.encode(message)),
  );
});
