import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenRouter } from "@openrouter/ai-sdk-provider";
import { APICallError, generateImage, generateSpeech } from "ai";
import sharp from "sharp";
import { beforeAll, describe, expect, test } from "vitest";
import { mp3Frames } from "../support/mp3-frames.ts";
import { openSharedStandalone, type SharedStandalone } from "../support/processes/shared-standalone.ts";
import type { OpenAiUpstream } from "../upstreams/openai/openai.ts";
import { readForm } from "../upstreams/openai/openai-image-request.ts";

let upstream: OpenAiUpstream;
let stack: SharedStandalone;
let clients: ReturnType<typeof createClients>;
let png: Uint8Array;

beforeAll(async () => {
  stack = await openSharedStandalone();
  ({ upstream } = stack);
  clients = createClients({ baseURL: `${stack.baseUrl}/api/v1`, apiKey: stack.inferenceKey });
  const background = { r: 9, g: 90, b: 200, alpha: 1 };
  png = await sharp({ create: { width: 32, height: 32, channels: 4, background } })
    .png()
    .toBuffer();
});

function createClients(settings: { baseURL: string; apiKey: string }) {
  return {
    openai: createOpenAI(settings),
    compatible: createOpenAICompatible({ name: "gateway", ...settings }),
    openrouter: createOpenRouter(settings),
  };
}

type ClientName = keyof ReturnType<typeof createClients>;

/** The files of the form that the provider was sent last: names and sizes. */
async function filesSent(): Promise<unknown[]> {
  const request = upstream.requests.at(-1);
  const form = request === undefined ? undefined : await readForm(request);
  return [...(form ?? [])].flatMap(([name, value]) => (value instanceof File ? [[name, value.size]] : []));
}

describe.for<ClientName>(["openai", "compatible", "openrouter"])("the AI SDK with %s", (name) => {
  const model = (id: string) => clients[name].imageModel(id);

  test("generates with a provider, its tokens told", async () => {
    const { images, usage, warnings } = await generateImage({
      model: model("openai/gpt-image-1.5"),
      prompt: "A lighthouse.",
      n: 2,
      // One client takes models that it does not know for models of single images.
      maxImagesPerCall: 2,
      size: "1536x1024",
    });
    expect(upstream.requests.at(-1)?.json).toMatchObject({ model: "gpt-image-1.5", n: 2, size: "1536x1024" });
    expect(images.map(({ mediaType }) => mediaType)).toEqual(["image/png", "image/png"]);
    expect((await sharp(images[0]?.uint8Array).metadata()).width).toBe(1536);
    expect(warnings).toEqual([]);
    // This one does not read the usage of images.
    if (name !== "compatible") expect(usage).toMatchObject({ inputTokens: 4, outputTokens: 2112 });
  });

  test("generates with the built-in painter", async () => {
    const { image } = await generateImage({ model: model("local/painter"), prompt: "A lighthouse." });
    expect(image.uint8Array.length).toBeGreaterThan(1000);
  });

  test("edits several images", async () => {
    const prompt = { text: "Brighter.", images: [png, png] };
    await generateImage({ model: model("openai/gpt-image-1.5"), prompt });
    expect(await filesSent()).toEqual([
      ["image[]", png.length],
      ["image[]", png.length],
    ]);
  });

  test("is told what is wrong", async () => {
    const failing = generateImage({
      model: model("local/painter"),
      prompt: "A lighthouse.",
      size: "7x7",
      maxRetries: 0,
    });
    const error = await failing.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(APICallError.isInstance(error)).toBe(true);
    expect(error).toMatchObject({
      statusCode: 400,
      message: "Invalid request parameters",
      isRetryable: false,
    });
  });
});

describe.for(["openai", "compatible"] as const)("the AI SDK with %s", (name) => {
  test("edits within a mask", async () => {
    const prompt = { text: "Brighter.", images: [png], mask: png };
    await generateImage({ model: clients[name].imageModel("openai/gpt-image-1.5"), prompt });
    expect(await filesSent()).toEqual([
      ["image[]", png.length],
      ["mask", png.length],
    ]);
  });
});

describe("the AI SDK with openai speaks", () => {
  test.for([
    ["with the built-in engine, by the client's own voice", "local/flite", undefined],
    ["with the built-in engine, by its voice", "local/flite", "slt"],
    ["with a provider", "openai/tts-1", "nova"],
  ] as const)("%s", async ([, id, voice]) => {
    const { audio } = await generateSpeech({
      model: clients.openai.speech(id),
      text: "Hello.",
      ...(voice === undefined ? {} : { voice }),
    });
    expect(audio.mediaType).toMatch(/^audio\/(mp3|mpeg)$/);
    if (id === "local/flite") expect(mp3Frames(Buffer.from(audio.uint8Array)).length).toBeGreaterThan(10);
    else expect(upstream.requests.at(-1)?.json).toMatchObject({ model: "tts-1", voice, input: "Hello." });
  });
});
