import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import {
  type GenerateRequest,
  ImageBackground,
  ImageFormat,
  ImageQuality,
} from "../../gen/media/image/v1/image_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import {
  type ImageGateway,
  imageFinished,
  imagePartial,
  imageStarted,
  startImageGateway,
  wholeImage,
} from "../support/gateway-images.ts";
import { testKeys } from "../support/gateway-server.ts";

const image = Buffer.from("an image");
const text = image.toString("base64");
const gate = Promise.withResolvers<void>();

let stack: ImageGateway;
let client: OpenAI;
let asked: GenerateRequest | undefined;

beforeAll(async () => {
  stack = await startImageGateway(
    "behind a socket",
    {
      async *generate(request) {
        asked = request;
        if (request.prompt === "refused") throw new DomainError(ErrorReason.CREDITS_EXHAUSTED, "poor");
        yield imageStarted({ streaming: request.stream });
        if (request.prompt === "slow") await gate.promise;
        if (request.stream) yield imagePartial(0, image);
        if (request.prompt === "breaks") throw new DomainError(ErrorReason.PROVIDER_FAILED, "broke");
        for (let index = 0; index < (request.n ?? 1); index++) yield* wholeImage(index, image);
        yield imageFinished();
      },
    },
    { keepAliveMs: 20 },
  );
  // The client's path ends in `/generations`; the rest of the shape is the same.
  client = new OpenAI({
    apiKey: testKeys.images,
    baseURL: `${stack.gateway.baseUrl}/api/v1`,
    maxRetries: 0,
    fetch: (url, init) => fetch(String(url).replace(/\/images\/generations$/, "/images"), init),
  });
});

afterAll(() => stack[Symbol.asyncDispose]());

describe("OpenAI's client at the gateway", () => {
  test("gets images with their usage", async () => {
    const answer = await client.images.generate({
      model: "acme/brush",
      prompt: "A lighthouse.",
      n: 2,
      size: "1536x1024",
      quality: "high",
      background: "transparent",
      output_format: "webp",
      output_compression: 80,
      user: "someone",
    });
    expect(answer.data?.map(({ b64_json }) => b64_json)).toEqual([text, text]);
    expect(answer.created).toBeGreaterThan(0);
    expect(answer.usage).toMatchObject({ total_tokens: 7 });
    expect(asked).toMatchObject({
      n: 2,
      size: "1536x1024",
      quality: ImageQuality.HIGH,
      background: ImageBackground.TRANSPARENT,
      outputFormat: ImageFormat.WEBP,
      outputCompression: 80,
      user: "someone",
      stream: false,
    });
  });

  test("reads partial images and the whole one as a stream, past comments", async () => {
    const stream = await client.images.generate({
      model: "acme/brush",
      prompt: "slow",
      stream: true,
      partial_images: 1,
    });
    gate.resolve();
    const events: unknown[] = [];
    for await (const event of stream) events.push(event);
    expect(events).toMatchObject([
      { type: "image_generation.partial_image", b64_json: text, partial_image_index: 0 },
      { type: "image_generation.completed", b64_json: text, usage: { total_tokens: 7 } },
    ]);
  });

  test("throws what went wrong before and in a stream", async () => {
    const failing = (prompt: string) =>
      client.images.generate({ model: "acme/brush", prompt, stream: true }).then(async (stream) => {
        for await (const event of stream) expect(event.type).toBe("image_generation.partial_image");
      });
    await expect(failing("refused")).rejects.toThrow(APIError);
    await expect(failing("refused")).rejects.toMatchObject({ status: 402, code: 402 });
    await expect(failing("breaks")).rejects.toThrow(APIError);
    await expect(failing("breaks")).rejects.toMatchObject({
      error: { code: 502, message: "Provider returned error" },
    });
  });
});
