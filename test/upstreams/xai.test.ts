import { createXai } from "@ai-sdk/xai";
import { generateImage, generateSpeech } from "ai";
import sharp from "sharp";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createImageSource } from "./stand-in/image-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";
import {
  type GrokBehaviour,
  type GrokUpstream,
  grokCodes,
  startGrokSpeech,
  startGrokUpstream,
} from "./xai.ts";

let upstream: GrokUpstream;
let speech: SpeechUpstream;

beforeAll(async () => {
  upstream = await startGrokUpstream();
  speech = await startGrokSpeech();
});
afterAll(async () => void (await Promise.all([upstream.close(), speech.close()])));
afterEach(() => {
  upstream.requests.length = 0;
});

const client = ({ baseUrl }: { baseUrl: string }, apiKey = "test-key") =>
  createXai({ apiKey, baseURL: `${baseUrl}/v1` });

type Drawing = Partial<Parameters<typeof generateImage>[0]>;
const draw = (changes: Drawing = {}, apiKey?: string) =>
  generateImage({
    model: client(upstream, apiKey).image("grok-imagine-image"),
    prompt: "A lighthouse.",
    maxRetries: 0,
    ...changes,
  });

const speak = (changes: Partial<Parameters<typeof generateSpeech>[0]> = {}) =>
  generateSpeech({ model: client(speech).speech(), text: "Hello.", maxRetries: 0, ...changes });

async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return await call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

describe("the images of the stand-in, by the AI SDK's client", () => {
  test("come in the ratio and tier asked for", async () => {
    const xai = { resolution: "2k" };
    const { images } = await draw({ n: 2, aspectRatio: "16:9", providerOptions: { xai } });
    const seen = await Promise.all(images.map(({ uint8Array }) => sharp(uint8Array).metadata()));
    expect(seen).toMatchObject(
      Array.from({ length: 2 }, () => ({ format: "jpeg", width: 2816, height: 1536 })),
    );
  });

  test("tell their cost", async () => {
    const model = client(upstream).image("grok-imagine-image");
    const nothing = { size: undefined, aspectRatio: undefined, seed: undefined };
    const more = { files: undefined, mask: undefined, providerOptions: {} };
    const { providerMetadata } = await model.doGenerate({ prompt: "A boat.", n: 3, ...nothing, ...more });
    expect(providerMetadata?.xai).toMatchObject({ costInUsdTicks: 600_000_000 });
  });

  test("are fetched where they come by address", async () => {
    upstream.next({ kind: "images", content: "url" });
    const { image } = await draw();
    expect(await sharp(image.uint8Array).metadata()).toMatchObject({ width: 1024, height: 1024 });
  });

  test("start from one image or several", async () => {
    const source = createImageSource();
    const image = await source.image({
      format: "png",
      width: 64,
      height: 64,
      isTransparent: false,
      shade: 1,
    });
    for (const images of [[image], [image, image]]) {
      expect((await draw({ prompt: { text: "This.", images } })).images).toHaveLength(1);
    }
    expect(upstream.requests.map(({ path }) => path)).toEqual(["/v1/images/edits", "/v1/images/edits"]);
  });

  test("that are kept back are told so", async () => {
    upstream.next({ kind: "images", moderated: [0] });
    expect(await errorOf(draw())).toMatchObject({ message: expect.stringContaining("content policy") });
  });

  test.for<[string, GrokBehaviour | undefined, string | undefined, number, RegExp]>([
    ["a wrong key", undefined, "xai-wrong", 400, /invalid argument: Incorrect API key/],
    [
      "a limit",
      { kind: "refusal", status: 429, body: { code: grokCodes.exhausted, error: "Too many requests." } },
      undefined,
      429,
      /exhausted: Too many requests/,
    ],
  ])("are refused: %s", async ([, behaviour, key, statusCode, message]) => {
    if (behaviour !== undefined) upstream.next(behaviour);
    const error = await errorOf(draw({}, key));
    expect(error).toMatchObject({ statusCode, message: expect.stringMatching(message) });
  });
});

describe("the speech of the stand-in, by the AI SDK's client", () => {
  test.for(["mp3", "pcm"] as const)("is %s", async (outputFormat) => {
    speech.next({ kind: "audio", totalBytes: 9_600 });
    const { audio } = await speak({ outputFormat, voice: "ara", speed: 1.2 });
    expect(audio.uint8Array).toHaveLength(9_600);
    expect(speech.requests.at(-1)?.json).toMatchObject({
      voice_id: "ara",
      output_format: { codec: outputFormat },
    });
  });

  test("is refused in a shape of its own", async () => {
    const error = await errorOf(speak({ speed: 4 }));
    expect(error).toMatchObject({ statusCode: 400, message: "speed must be between 0.7 and 1.5" });
  });
});
