import type { GenerateRequest } from "../../gen/media/image/v1/image_pb.ts";
import { type BodyLimits, readLargeJsonBody } from "../body/request-body.ts";
import { apiPath } from "../docs/openapi.ts";
import type { RouteDocument } from "../docs/route-document.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Route } from "../http/route.ts";
import { imageEventSchema, imagesAnswerSchema } from "./answer-schema.ts";
import { imagesBodySchema, toGenerateRequest } from "./body.ts";
import { generateImages, type ImagesDependencies, ownImageDoor } from "./generate-images.ts";

const onePixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const usage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0.001, is_byok: false };
const createdExample = 1_767_225_600;

const document: RouteDocument = {
  id: "createImages",
  tag: "Images",
  summary: "Prompt to images",
  description:
    "Answers with JSON; with `stream: true`, where the chosen provider streams natively, with server-sent events. Their headers go out with the first event or after 10 s: before that a failure is a plain JSON error, after it an event of type `error`. An answer that breaks inside of an image is cut.",
  body: {
    name: "ImagesRequest",
    schema: imagesBodySchema,
    examples: ({ image: { model } }) => ({
      least: { model, prompt: "A lighthouse at dusk" },
      more: {
        model,
        prompt: "A lighthouse at dusk",
        aspect_ratio: "16:9",
        resolution: "2K",
        output_format: "webp",
        n: 2,
        seed: 7,
        stream: true,
      },
    }),
  },
  answer: {
    description: "The images.",
    headers: ["X-Generation-Id", "X-Ignored-Parameters", "X-Unrecognized-Prompt-Words"],
    content: {
      "application/json": {
        schema: { name: "ImagesAnswer", schema: imagesAnswerSchema },
        example: { created: createdExample, data: [{ media_type: "image/png", b64_json: onePixel }], usage },
      },
      "text/event-stream": {
        schema: { name: "ImageEvent", schema: imageEventSchema },
        example: {
          type: "image_generation.completed",
          created: createdExample,
          media_type: "image/png",
          b64_json: onePixel,
          usage,
        },
      },
    },
  },
};

/** POST /api/v1/images: a prompt in, images out as JSON or as server-sent events. */
export function imagesRoute(dependencies: ImagesDependencies): Route {
  return {
    method: "POST",
    path: `${apiPath}/images`,
    operation: "images",
    access: "images",
    document,
    async handle(exchange) {
      const request = await readRequest(exchange, dependencies.bodyLimits);
      await generateImages(exchange, request, ownImageDoor, dependencies);
    },
  };
}

/** In a function of its own, so that the body's text is gone while the images are made. */
async function readRequest(exchange: Exchange, limits: BodyLimits): Promise<GenerateRequest> {
  const { value, images } = await readLargeJsonBody(exchange, limits, ["input_references"]);
  return toGenerateRequest(value, images);
}
