import { createByteDance } from "@ai-sdk/bytedance";
import { APICallError, generateImage } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SeedreamUpstream, seedreamImage, startSeedreamUpstream } from "./byteplus.ts";

let upstream: SeedreamUpstream;

beforeAll(async () => {
  upstream = await startSeedreamUpstream();
});
afterAll(async () => await upstream.close());

const pixels = { width: 64, height: 48 };
const modelOf = (apiKey = "test-key") =>
  createByteDance({ baseURL: `${upstream.baseUrl}/api/v3`, apiKey }).image("seedream-4-5-251128");

test("a client of others sees the stand-in's image", async () => {
  upstream.next({ pixels });
  const { image } = await generateImage({
    model: modelOf(),
    prompt: "A boat.",
    size: "2048x2048",
    maxRetries: 0,
  });
  expect(Buffer.from(image.uint8Array).equals(await seedreamImage(0))).toBe(true);
});

test("a client of others understands the stand-in's refusals", async () => {
  const drawing = generateImage({ model: modelOf("wrong"), prompt: "A boat.", maxRetries: 0 });
  const error = await drawing.catch((thrown: unknown) => thrown);
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 401, message: expect.stringContaining("missing or invalid") });
});

// The vendor's own guide streams with OpenAI's client.
async function stream(onEvent: (event: unknown) => void): Promise<void> {
  const client = new OpenAI({ baseURL: `${upstream.baseUrl}/api/v3`, apiKey: "test-key", maxRetries: 0 });
  const parameters = {
    model: "seedream-4-5-251128",
    prompt: "Two boats.",
    size: "2048x2048",
    response_format: "b64_json" as const,
    stream: true as const,
    sequential_image_generation: "auto",
    sequential_image_generation_options: { max_images: 2 },
  };
  for await (const event of await client.images.generate(parameters)) onEvent(event);
}

test("a client of others takes the stand-in's events", async () => {
  upstream.next({ pixels, isOddlyFramed: true });
  const events: unknown[] = [];
  await stream((event) => events.push(event));
  const made = { type: "image_generation.partial_succeeded", size: "2048x2048" };
  expect(events).toMatchObject([
    { ...made, image_index: 0, b64_json: (await seedreamImage(0)).toString("base64") },
    { ...made, image_index: 1, b64_json: (await seedreamImage(1)).toString("base64") },
    { type: "image_generation.completed", usage: { generated_images: 2, output_tokens: 32_768 } },
  ]);
});

test("a client of others sees which image of the stand-in's failed", async () => {
  const code = "OutputImageSensitiveContentDetected";
  upstream.next({ pixels, images: [true, code] });
  const events: unknown[] = [];
  await expect(stream((event) => events.push(event))).rejects.toMatchObject({ code });
  expect(events).toHaveLength(1);
});
