import {
  type GenerationFinished,
  type ImageStart,
  type PartialImage,
  type TextChunk,
  TextPhase,
} from "../../gen/media/image/v1/image_pb.ts";
import { encodeServerSentEvent, eventEnd, eventStart } from "../../lib/http/sse-encode.ts";
import { toImageUsage } from "./answer-schema.ts";

/**
 * How an answer with images is written: the texts around each image's base64, which is written between `head` and the
 * quote that closes it. One form is made for one answer.
 */
export interface ImageForm {
  /** Buffered: what stands before the first image, before each image's base64, and after the last image. */
  readonly json: {
    readonly start: string;
    itemHead(start: ImageStart): string;
    end(finished: GenerationFinished): string;
  };
  /** Streamed. The tails follow the quote. */
  readonly events: {
    partialHead(partial: PartialImage): string;
    partialTail(partial: PartialImage): string;
    /** Undefined where the form has no such event. */
    text(chunk: TextChunk): string | undefined;
    completedHead(start: ImageStart): string;
    /** The member that states the usage, a comma before it. */
    usage(finished: GenerationFinished): string;
    /** What follows the last event; may be empty. */
    readonly end: string;
    error(body: object): string;
  };
}

const phaseWords: Readonly<Partial<Record<TextPhase, string>>> = {
  [TextPhase.CONTENT]: "content",
  [TextPhase.REASONING]: "reasoning",
  [TextPhase.DRAFT]: "draft",
};

const doneEvent = encodeServerSentEvent("[DONE]");

/** The form of POST /images. */
export function createImageForm(createdUnixS: number): ImageForm {
  const usage = (finished: GenerationFinished) => `"usage":${JSON.stringify(toImageUsage(finished))}`;
  return {
    json: {
      start: `{"created":${createdUnixS},"data":[`,
      itemHead: ({ mediaType }) => `{"media_type":${JSON.stringify(mediaType)},"b64_json":"`,
      end: (finished) => `],${usage(finished)}}`,
    },
    events: {
      partialHead: () => `${eventStart}{"type":"image_generation.partial_image","b64_json":"`,
      partialTail: ({ index }) => `,"partial_image_index":${index}}${eventEnd}`,
      text({ phase, text }) {
        const event = { type: "image_generation.text_chunk", phase: phaseWords[phase] ?? "content", text };
        return encodeServerSentEvent(JSON.stringify(event));
      },
      completedHead({ mediaType }) {
        const fields = `"created":${createdUnixS},"media_type":${JSON.stringify(mediaType)}`;
        return `${eventStart}{"type":"image_generation.completed",${fields},"b64_json":"`;
      },
      usage: (finished) => `,${usage(finished)}`,
      end: doneEvent,
      error: (body) => encodeServerSentEvent(JSON.stringify({ type: "error", ...body })),
    },
  };
}
