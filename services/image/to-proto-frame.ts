import type { MessageInitShape } from "@bufbuild/protobuf";
import { type GenerateResponseSchema, TextPhase } from "../../gen/media/image/v1/image_pb.ts";
import type { GenerationFrame } from "./generate.ts";

type ProtoFrame = NonNullable<MessageInitShape<typeof GenerateResponseSchema>["frame"]>;

const phases = {
  content: TextPhase.CONTENT,
  reasoning: TextPhase.REASONING,
  draft: TextPhase.DRAFT,
} as const;

/** A frame as it travels. */
export function toProtoFrame(frame: GenerationFrame): MessageInitShape<typeof GenerateResponseSchema> {
  return { frame: toProto(frame) };
}

function toProto(frame: GenerationFrame): ProtoFrame {
  switch (frame.kind) {
    case "started":
      return toProtoStarted(frame);
    case "partial":
      return {
        case: "partial",
        value: { index: frame.index, data: frame.bytes, mediaType: frame.mediaType },
      };
    case "text":
      return { case: "textChunk", value: { phase: phases[frame.phase], text: frame.text } };
    case "image_start": {
      const { kind, sizeBytes, ...value } = frame;
      return { case: "imageStart", value: { ...value, sizeBytes: BigInt(sizeBytes) } };
    }
    case "image_data":
      return { case: "imageData", value: frame.bytes };
    case "finished": {
      const { kind, ...value } = frame;
      return { case: "finished", value };
    }
  }
}

function toProtoStarted(frame: Extract<GenerationFrame, { kind: "started" }>): ProtoFrame {
  const { generationId, endpoint, streaming, ignoredParameters, unrecognizedPromptWords } = frame;
  return {
    case: "started",
    value: {
      generationId,
      endpoint: {
        endpointId: endpoint.id,
        model: endpoint.model,
        modelPermaslug: endpoint.permaslug,
        providerSlug: endpoint.providerSlug,
        providerName: endpoint.providerName,
      },
      streaming,
      ignoredParameters: [...ignoredParameters],
      unrecognizedPromptWords: [...unrecognizedPromptWords],
    },
  };
}
