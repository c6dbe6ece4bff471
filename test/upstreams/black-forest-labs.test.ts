import { createBlackForestLabs } from "@ai-sdk/black-forest-labs";
import { generateImage } from "ai";
import sharp from "sharp";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type FluxUpstream, startFluxUpstream } from "./black-forest-labs.ts";
import { createImageSource } from "./stand-in/image-source.ts";

let upstream: FluxUpstream;

beforeAll(async () => {
  upstream = await startFluxUpstream();
});
afterAll(async () => await upstream.close());
afterEach(() => {
  upstream.requests.length = 0;
});

const sourceImage = () =>
  createImageSource().image({ format: "png", width: 64, height: 64, isTransparent: false, shade: 1 });

/** An image by the client of Vercel's AI SDK. */
function draw({
  apiKey = "test-key",
  prompt = "A lighthouse." as Parameters<typeof generateImage>[0]["prompt"],
} = {}) {
  const client = createBlackForestLabs({ apiKey, baseURL: `${upstream.baseUrl}/v1`, pollIntervalMillis: 5 });
  return generateImage({
    model: client.image("flux-2-pro"),
    prompt,
    maxRetries: 0,
    providerOptions: { blackForestLabs: { width: 1536, height: 1024, outputFormat: "png", seed: 7 } },
  });
}

describe("the AI SDK's client against the stand-in", () => {
  test("submits, asks until it is ready, fetches and tells the cost", async () => {
    upstream.next({ states: ["Pending", "Pending", "Ready"] });
    const { image, providerMetadata } = await draw();
    expect(await sharp(image.uint8Array).metadata()).toMatchObject({
      format: "png",
      width: 1536,
      height: 1024,
    });
    expect(providerMetadata.blackForestLabs?.images[0]).toMatchObject({ cost: 4.5, outputMegapixels: 2 });
    const paths = upstream.requests.map(({ method, path }) => `${method} ${path.split("?")[0]}`);
    expect(paths.slice(0, 4)).toEqual([
      "POST /v1/flux-2-pro",
      ...Array.from({ length: 3 }, () => "GET /v1/get_result"),
    ]);
    expect(paths[4]).toMatch(/^GET \/delivery\/.*\.png$/);
  });

  test("starts from images", async () => {
    const images = [await sourceImage(), await sourceImage()];
    const { providerMetadata } = await draw({ prompt: { text: "Both.", images } });
    expect(providerMetadata.blackForestLabs?.images[0]).toMatchObject({ cost: 7.5, inputMegapixels: 2 });
    expect(Object.keys(upstream.requests[0]?.json as object)).toEqual(
      expect.arrayContaining(["input_image", "input_image_2"]),
    );
  });

  test.for([
    [
      "a wrong key",
      { apiKey: "sk-wrong" },
      undefined,
      { statusCode: 403, message: /Invalid Authentication/ },
    ],
    [
      "no credits",
      {},
      { submission: { status: 402, body: { detail: "Insufficient credits" } } },
      { statusCode: 402 },
    ],
    ["a broken task", {}, { states: ["Error"] }, { message: /generation failed/ }],
    ["an expired image", {}, { expired: 410 }, { statusCode: 410 }],
    ["a moderated task, by asking on", {}, { states: ["Request Moderated", "Error"] }, { message: /failed/ }],
  ] as const)("takes for what it is: %s", async ([, changes, behaviour, error]) => {
    if (behaviour !== undefined) upstream.next(behaviour);
    const thrown: unknown = await draw(changes).catch((reason: unknown) => reason);
    expect(thrown).toMatchObject({
      ...error,
      ...("message" in error && { message: expect.stringMatching(error.message) }),
    });
  });
});
