import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { APICallError, generateText, streamText } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type GeminiUpstream, geminiAudio, geminiImage, startGemini } from "./gemini.ts";

let upstream: GeminiUpstream;

beforeAll(async () => {
  upstream = await startGemini("test-key");
});
afterAll(async () => await upstream.close());

const modelOf = (name: string, apiKey = "test-key") =>
  createGoogleGenerativeAI({ baseURL: `${upstream.baseUrl}/v1beta`, apiKey })(name);

test("a client of others hears all of the stand-in's speech", async () => {
  const stream = streamText({
    model: modelOf("gemini-3.8-flash-tts"),
    prompt: "Hello.",
    maxRetries: 0,
    providerOptions: { google: { responseModalities: ["AUDIO"] } },
  });
  const pieces: Uint8Array[] = [];
  for await (const part of stream.fullStream) if (part.type === "file") pieces.push(part.file.uint8Array);
  expect(Buffer.concat(pieces).equals(geminiAudio(9600))).toBe(true);
  expect(await stream.usage).toMatchObject({ inputTokens: 8, outputTokens: 120 });
});

test("a client of others sees the stand-in's image, and its thoughts counted apart", async () => {
  const { files, usage } = await generateText({
    model: modelOf("gemini-3-pro-image"),
    prompt: "A boat.",
    maxRetries: 0,
    providerOptions: { google: { responseModalities: ["IMAGE"], imageConfig: { aspectRatio: "16:9" } } },
  });
  expect(files.map(({ mediaType }) => mediaType)).toEqual(["image/png"]);
  expect(Buffer.from(files[0]?.uint8Array ?? []).equals(await geminiImage())).toBe(true);
  expect(usage).toMatchObject({
    inputTokens: 300,
    outputTokens: 1340,
    outputTokenDetails: { reasoningTokens: 50 },
  });
});

test("a client of others understands the stand-in's refusals", async () => {
  const asked = generateText({
    model: modelOf("gemini-3-pro-image", "wrong"),
    prompt: "A boat.",
    maxRetries: 0,
    providerOptions: { google: { responseModalities: ["IMAGE"] } },
  });
  const error = await asked.catch((thrown: unknown) => thrown);
  expect(APICallError.isInstance(error)).toBe(true);
  expect(error).toMatchObject({ statusCode: 400, message: expect.stringContaining("API key not valid") });
});
