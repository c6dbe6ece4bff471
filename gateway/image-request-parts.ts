import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  type ReferenceImage,
  ReferenceImageSchema,
} from "../gen/media/image/v1/image_pb.ts";
import type { RequestParts } from "../lib/runtime/request-parts.ts";

const referencesNumber = GenerateRequestSchema.field.inputReferences.number;
const dataNumber = ReferenceImageSchema.field.data.number;

/** The reference images of a request, which make nearly all of it. */
export const imageRequestParts: RequestParts = {
  type: GenerateRequestSchema,
  split(message: Message) {
    const request = message as GenerateRequest;
    const rest = { ...request, inputReferences: [] };
    return { rest, parts: request.inputReferences.flatMap(toParts) };
  },
};

function toParts(reference: ReferenceImage): readonly Uint8Array[] {
  const { source } = reference;
  if (source.case !== "data") {
    return [toBinary(GenerateRequestSchema, create(GenerateRequestSchema, { inputReferences: [reference] }))];
  }
  const bytes = source.value;
  const inner = new BinaryWriter().tag(dataNumber, WireType.LengthDelimited).uint32(bytes.length).finish();
  const outer = new BinaryWriter()
    .tag(referencesNumber, WireType.LengthDelimited)
    .uint32(inner.length + bytes.length)
    .finish();
  return [outer, inner, bytes];
}
