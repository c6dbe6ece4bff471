import { isForm, parseFormBody } from "../../body/form-body.ts";
import { type BodyLimits, readBody, readLargeJsonBody } from "../../body/request-body.ts";
import { apiPath } from "../../docs/openapi.ts";
import type { RouteDocument } from "../../docs/route-document.ts";
import type { Exchange } from "../../http/exchange.ts";
import type { Route } from "../../http/route.ts";
import { generateImages, type ImageDoor, type ImagesDependencies } from "../generate-images.ts";
import { imageGenerationsAnswerSchema, imageGenerationsEventSchema } from "./answer-schema.ts";
import {
  editsBodySchema,
  editsFormSchema,
  editsImagesMembers,
  generationsBodySchema,
  type ImageGenerationsRequest,
  toEditsRequest,
  toEditsRequestOfForm,
  toGenerationsRequest,
} from "./body.ts";
import { createImageGenerationsForm, type ImageOperation } from "./form.ts";

const onePixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const onePixelImage = { image_url: `data:image/png;base64,${onePixel}` };
const createdExample = 1_767_225_600;
const noTokens = { text_tokens: 0, image_tokens: 0 };
const usage = {
  input_tokens: 0,
  output_tokens: 0,
  total_tokens: 0,
  input_tokens_details: noTokens,
  output_tokens_details: noTokens,
  cost: 0.001,
  is_byok: false,
};
const look = { output_format: "png", size: "1024x1024" };

const answer = (operation: ImageOperation): RouteDocument["answer"] => ({
  description: "The images.",
  headers: ["X-Generation-Id", "X-Ignored-Parameters", "X-Unrecognized-Prompt-Words"],
  content: {
    "application/json": {
      schema: { name: "ImageGenerationsAnswer", schema: imageGenerationsAnswerSchema },
      example: { created: createdExample, data: [{ b64_json: onePixel }], ...look, usage },
    },
    "text/event-stream": {
      schema: { name: "ImageGenerationsEvent", schema: imageGenerationsEventSchema },
      example: {
        type: `${operation}.completed`,
        created_at: createdExample,
        ...look,
        quality: "auto",
        background: "auto",
        b64_json: onePixel,
        usage,
      },
    },
  },
});

const about =
  "The same generation as POST /images in the shapes of OpenAI's clients. With `stream: true` the answer comes as events, also from providers without previews.";
const prompt = "A lighthouse at dusk";

const generationsDocument: RouteDocument = {
  id: "createImageGeneration",
  tag: "Images",
  summary: "Prompt to images, for OpenAI's clients",
  description: about,
  body: {
    name: "ImageGenerationRequest",
    schema: generationsBodySchema,
    examples: ({ image: { model } }) => ({
      least: { model, prompt },
      more: { model, prompt, size: "1536x1024", quality: "high", stream: true, partial_images: 2 },
    }),
  },
  answer: answer("image_generation"),
};

const editsDocument: RouteDocument = {
  id: "createImageEdit",
  tag: "Images",
  summary: "Images and a prompt to images, for OpenAI's clients",
  description: `${about} The images come as files of a form, or by URL.`,
  body: {
    name: "ImageEditRequest",
    schema: editsBodySchema,
    examples: ({ image: { model } }) => ({
      least: { model, prompt, images: [onePixelImage] },
      more: { model, prompt, images: [onePixelImage, onePixelImage], size: "1024x1024" },
    }),
    form: { name: "ImageEditForm", schema: editsFormSchema },
  },
  answer: answer("image_edit"),
};

/** OpenAI's image operations: doors to the generation that POST /images is. */
export function imageGenerationsRoutes(dependencies: ImagesDependencies): readonly Route[] {
  const route = { method: "POST", operation: "images", access: "images" } as const;
  return [
    {
      ...route,
      path: `${apiPath}/images/generations`,
      document: generationsDocument,
      async handle(exchange) {
        const { request, wireNames } = await readGeneration(exchange, dependencies.bodyLimits);
        await generateImages(exchange, request, door("image_generation", request, wireNames), dependencies);
      },
    },
    {
      ...route,
      path: `${apiPath}/images/edits`,
      document: editsDocument,
      async handle(exchange) {
        const { request, wireNames } = await readEdit(exchange, dependencies.bodyLimits);
        await generateImages(exchange, request, door("image_edit", request, wireNames), dependencies);
      },
    },
  ];
}

// In functions of their own, so that the body's text is gone while the images are made.

async function readGeneration(exchange: Exchange, limits: BodyLimits): Promise<ImageGenerationsRequest> {
  const { value } = await readLargeJsonBody(exchange, limits, []);
  return toGenerationsRequest(value);
}

async function readEdit(exchange: Exchange, limits: BodyLimits): Promise<ImageGenerationsRequest> {
  const { headers } = exchange.request;
  if (isForm(headers)) {
    return toEditsRequestOfForm(await parseFormBody(await readBody(exchange, limits), headers));
  }
  const { value, images } = await readLargeJsonBody(exchange, limits, editsImagesMembers);
  return toEditsRequest(value, images);
}

function door(
  operation: ImageOperation,
  request: ImageGenerationsRequest["request"],
  wireNames: ImageGenerationsRequest["wireNames"],
): ImageDoor {
  // Without previews a stream is a stream here; what had no effect is the wish for them.
  const ofStream = (request.partialImages ?? 0) > 0 ? "partial_images" : undefined;
  return {
    createForm: (createdUnixS, started) =>
      createImageGenerationsForm(operation, request, createdUnixS, started),
    alwaysStreams: true,
    nameIgnored: (name) => (name === "stream" ? ofStream : name),
    wireNames,
  };
}
