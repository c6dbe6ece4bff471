import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type ReferenceImage,
  ReferenceImageSchema,
} from "../../gen/media/image/v1/image_pb.ts";
import type { RequestParts } from "../../lib/rpc/transport/direct-transport.ts";

const { inputReferences: referencesField, mask: maskField } = GenerateRequestSchema.field;
const dataNumber = ReferenceImageSchema.field.data.number;

/** The reference images and the mask of a request, which make nearly all of it. */
export const imageRequestParts: RequestParts = {
  type: GenerateRequestSchema,
  split(message: Message) {
    const { inputReferences, mask, ...others } = message as GenerateRequest;
    const parts = inputReferences.flatMap((image) => toParts(image, referencesField.number));
    if (mask !== undefined) parts.push(...toParts(mask, maskField.number));
    return { rest: { ...others, inputReferences: [] } satisfies GenerateRequest, parts };
  },
};

/** An image as the field of that number. */
function toParts({ source }: ReferenceImage, number: number): readonly Uint8Array[] {
  if (source.case !== "data") {
    const image = toBinary(ReferenceImageSchema, create(ReferenceImageSchema, { source }));
    return [lengthOf(number, image.length), image];
  }
  const bytes = source.value;
  const head = lengthOf(dataNumber, bytes.length);
  return [lengthOf(number, head.length + bytes.length), head, bytes];
}

/** What stands before a field of so many bytes. */
function lengthOf(number: number, bytes: number): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).uint32(bytes).finish();
}
