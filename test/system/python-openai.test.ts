import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { needPythonClients, runPythonClient } from "../contract/python-client.ts";
import { openAiEnv, startTestStandalone, type TestStandalone } from "../support/processes/standalone.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

/** The first test waits for the script, whose imports alone take long. */
const patience = { timeout: 150_000 };
const pngStart = "89504e47";
const tokens = (input: number, output: number) =>
  expect.objectContaining({ input_tokens: input, output_tokens: output, total_tokens: input + output });

let upstream: OpenAiUpstream;
let stack: TestStandalone;
let outcomes: Promise<Record<string, unknown>> | undefined;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  stack = await startTestStandalone(openAiEnv(upstream));
});

afterAll(async () => {
  await outcomes?.catch(() => undefined);
  await stack.close();
  await upstream.close();
});

/** What all calls of the script gave, made once. */
async function outcomeOf(call: string): Promise<unknown> {
  outcomes ??= runClients();
  return (await outcomes)[call];
}

async function runClients(): Promise<Record<string, unknown>> {
  const background = { r: 9, g: 90, b: 200, alpha: 1 };
  const png = await sharp({ create: { width: 32, height: 32, channels: 4, background } })
    .png()
    .toBuffer();
  return await runPythonClient("openai_clients.py", {
    baseUrl: `${stack.baseUrl}/api/v1`,
    apiKey: stack.inferenceKey,
    png: png.toString("base64"),
  });
}

describe("OpenAI's client for Python", () => {
  test.for([
    [
      "generates",
      "generate",
      {
        images: [pngStart, pngStart],
        size: "1536x1024",
        quality: "high",
        output_format: "png",
        usage: tokens(4, 8320),
      },
    ],
    [
      "generates with the built-in painter",
      "generate_local",
      { images: [pngStart], size: "1024x1024", quality: null, output_format: "png", usage: tokens(0, 0) },
    ],
    [
      "reads a stream",
      "stream",
      [
        { kind: "ImageGenPartialImageEvent", type: "image_generation.partial_image", size: "auto" },
        { kind: "ImageGenCompletedEvent", type: "image_generation.completed", size: "1024x1024" },
      ].map((event) => ({ ...event, image: pngStart })),
    ],
    ["edits two images within a mask", "edit", expect.objectContaining({ usage: tokens(604, 1056) })],
    [
      "reads the stream of an edit",
      "edit_stream",
      [
        {
          kind: "ImageEditCompletedEvent",
          type: "image_edit.completed",
          size: "1024x1024",
          image: pngStart,
        },
      ],
    ],
    ["speaks by its own voices", "speak", expect.any(Number)],
    ["lists models", "models", expect.arrayContaining([["local/flite", "model", "local"]])],
    ["retrieves one", "model", "local"],
    [
      "raises its own errors",
      "refused",
      {
        raised: "InternalServerError",
        status: 502,
        message: expect.stringContaining("Provider returned error"),
        type: null,
        param: null,
        body: expect.objectContaining({ metadata: expect.objectContaining({ reason: "content_policy" }) }),
      },
    ],
  ] as const)("%s", patience, async ([, call, expected], context) => {
    needPythonClients(context);
    expect(await outcomeOf(call)).toEqual(expected);
  });

  test.for([
    ["sends once what is refused for policy", "refused", "moderation_blocked", 1],
    ["sends again what met an overload, as often as it does by itself", "overloaded", "status=429", 3],
  ] as const)("%s", patience, async ([, call, mark, times], context) => {
    needPythonClients(context);
    await outcomeOf(call);
    expect(upstream.requests.filter(({ bytes }) => bytes.includes(mark))).toHaveLength(times);
  });
});

describe("LiteLLM as a client", () => {
  test.for([
    ["speaks", "litellm_speech", expect.any(Number)],
    [
      "generates",
      "litellm_images",
      expect.objectContaining({ images: [pngStart], size: "1024x1024", usage: tokens(4, 1056) }),
    ],
    [
      "generates with the built-in painter",
      "litellm_images_local",
      expect.objectContaining({ images: [pngStart] }),
    ],
  ] as const)("%s", patience, async ([, call, expected], context) => {
    needPythonClients(context);
    expect(await outcomeOf(call)).toEqual(expected);
  });
});
