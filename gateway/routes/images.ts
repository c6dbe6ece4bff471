import type { Client } from "@connectrpc/connect";
import type { GenerateRequest } from "../../gen/media/image/v1/image_pb.ts";
import type { ImageService } from "../../gen/media/image/v1/image_service_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { AnswerWriter } from "../answer-writer.ts";
import type { Exchange } from "../exchange.ts";
import { answerImages } from "../image-answer.ts";
import { imageEventSchema, imagesAnswerSchema } from "../image-answer-schema.ts";
import { ImageEvents } from "../image-events.ts";
import { ImageJson } from "../image-json.ts";
import { imagesBodySchema, toGenerateRequest } from "../images-body.ts";
import { parseJsonBody } from "../json-body.ts";
import { apiPath } from "../openapi.ts";
import { type BodyLimits, readBody } from "../request-body.ts";
import type { Route } from "../route.ts";
import type { RouteDocument } from "../route-document.ts";

/** What POST /images needs. */
export interface ImagesDependencies {
  image: Client<typeof ImageService>;
  bodyLimits: BodyLimits;
  clientStallTimeoutMs: number;
  imageTimeoutMs: number;
  keepAliveMs: number;
  clock: Clock;
}

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
    examples: {
      least: { model: "author/model", prompt: "A lighthouse at dusk" },
      more: {
        model: "author/model",
        prompt: "A lighthouse at dusk",
        aspect_ratio: "16:9",
        resolution: "2K",
        output_format: "webp",
        n: 2,
        seed: 7,
        stream: true,
      },
    },
  },
  answer: {
    description: "The images.",
    headers: ["X-Generation-Id", "X-Ignored-Parameters"],
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
      await generate(exchange, request, dependencies);
    },
  };
}

/** In a function of its own, so that the body's text is gone while the images are made. */
async function readRequest(exchange: Exchange, limits: BodyLimits): Promise<GenerateRequest> {
  const body = await readBody(exchange, limits);
  return toGenerateRequest(parseJsonBody(body, exchange.request.headers));
}

async function generate(
  exchange: Exchange,
  request: GenerateRequest,
  { image, clientStallTimeoutMs, imageTimeoutMs, keepAliveMs, clock }: ImagesDependencies,
): Promise<void> {
  const deadlineMs = exchange.startedMs + imageTimeoutMs;
  const timeoutMs = Math.max(1, Math.ceil(deadlineMs - clock.monotonicMs()));
  const contextValues = exchange.callContext();
  const limits = { stallTimeoutMs: clientStallTimeoutMs, deadlineMs, clock };
  await answerImages(
    exchange,
    (signal) => image.generate(request, { signal, timeoutMs, contextValues }),
    (started) => {
      const writer = new AnswerWriter(exchange, limits);
      const createdUnixS = Math.floor(clock.nowMs() / 1000);
      if (!request.stream || !started.streaming) return new ImageJson(writer, started, createdUnixS);
      const headersInMs = exchange.startedMs + keepAliveMs - clock.monotonicMs();
      const n = request.n ?? 1;
      return new ImageEvents({ exchange, writer, started, createdUnixS, n, keepAliveMs, headersInMs });
    },
  );
}
