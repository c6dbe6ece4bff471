import {
  type GenerateRequest,
  type GenerationFinished,
  type GenerationStarted,
  ImageBackground,
  ImageFormat,
  ImageQuality,
  type ImageStart,
} from "../../../gen/media/image/v1/image_pb.ts";
import { eventEnd, eventStart } from "../../../lib/http/sse-encode.ts";
import type { ImageForm } from "../form.ts";
import { toImageTokenUsage } from "./answer-schema.ts";

/** Which of OpenAI's image operations an answer is for; begins the names of its events. */
export type ImageOperation = "image_generation" | "image_edit";

type Members = Readonly<Record<string, string | number>>;

const qualityWords: Readonly<Partial<Record<ImageQuality, string>>> = {
  [ImageQuality.LOW]: "low",
  [ImageQuality.MEDIUM]: "medium",
  [ImageQuality.HIGH]: "high",
};

const backgroundWords: Readonly<Partial<Record<ImageBackground, string>>> = {
  [ImageBackground.TRANSPARENT]: "transparent",
  [ImageBackground.OPAQUE]: "opaque",
};

const formatWords: Readonly<Partial<Record<ImageFormat, string>>> = {
  [ImageFormat.JPEG]: "jpeg",
  [ImageFormat.WEBP]: "webp",
  [ImageFormat.SVG]: "svg",
};

/**
 * The form of OpenAI's "create image" and "create image edit" (API reference, Images). Quality and background that the
 * provider chose itself are unknown: `auto` in events, which need them, and absent elsewhere.
 */
export function createImageGenerationsForm(
  operation: ImageOperation,
  request: GenerateRequest,
  createdUnixS: number,
  { ignoredParameters }: GenerationStarted,
): ImageForm {
  const quality = ignoredParameters.includes("quality") ? undefined : qualityWords[request.quality];
  const background = backgroundWords[request.background];
  const look: Members = { output_format: formatWords[request.outputFormat] ?? "png" };
  const toldLook: Members = {
    ...look,
    ...(quality === undefined ? {} : { quality }),
    ...(background === undefined ? {} : { background }),
  };
  const eventLook: Members = { ...look, quality: quality ?? "auto", background: background ?? "auto" };
  const asked = /^\d+x\d+$/.test(request.size) ? request.size : "auto";
  let size: string | undefined;
  const eventHead = (event: string, members: Members) => {
    const type = `${operation}.${event}`;
    const fields = textOf({ type, created_at: createdUnixS, ...eventLook, ...members });
    return `event: ${type}\n${eventStart}{${fields},"b64_json":"`;
  };
  const usage = (finished: GenerationFinished) => `"usage":${JSON.stringify(toImageTokenUsage(finished))}`;
  return {
    json: {
      start: `{"created":${createdUnixS},"data":[`,
      itemHead(start) {
        size ??= sizeOf(start);
        return `{"b64_json":"`;
      },
      end: (finished) =>
        `],${textOf({ ...toldLook, ...(size === undefined ? {} : { size }) })},${usage(finished)}}`,
    },
    events: {
      partialHead: ({ index }) => eventHead("partial_image", { size: asked, partial_image_index: index }),
      partialTail: () => `}${eventEnd}`,
      text: () => undefined,
      completedHead: (start) => eventHead("completed", { size: sizeOf(start) ?? asked }),
      usage: (finished) => `,${usage(finished)}`,
      end: "",
      error: (body) => `event: error\n${eventStart}${JSON.stringify({ type: "error", ...body })}${eventEnd}`,
    },
  };
}

function sizeOf({ width, height }: ImageStart): string | undefined {
  return width > 0 && height > 0 ? `${width}x${height}` : undefined;
}

/** Members of a JSON object, without its braces. */
function textOf(members: Members): string {
  return JSON.stringify(members).slice(1, -1);
}
