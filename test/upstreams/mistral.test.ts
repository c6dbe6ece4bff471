import { createMistral } from "@ai-sdk/mistral";
import { APICallError, generateSpeech } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mistralError, startMistralUpstream } from "./mistral.ts";
import { createAudioSource, endlessWavHeader, firstBytes } from "./stand-in/audio-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";

let upstream: SpeechUpstream;

beforeAll(async () => {
  upstream = await startMistralUpstream();
});
afterAll(async () => await upstream.close());

const text = "Hello.";
const voice = "gb_jane_neutral";

function speak(more: Partial<Parameters<typeof generateSpeech>[0]> = {}, apiKey = "test-key") {
  const client = createMistral({ apiKey, baseURL: `${upstream.baseUrl}/v1` });
  return generateSpeech({
    model: client.speech("voxtral-mini-tts-3-0"),
    text,
    voice,
    maxRetries: 0,
    ...more,
  });
}

async function errorOf(speech: Promise<unknown>): Promise<{ statusCode: number | undefined; body: unknown }> {
  const error: unknown = await speech.catch((thrown: unknown) => thrown);
  if (!APICallError.isInstance(error)) throw error;
  return { statusCode: error.statusCode, body: JSON.parse(error.responseBody ?? "null") };
}

test.for(["mp3", "wav"] as const)("the AI SDK's client gets %s", async (outputFormat) => {
  upstream.next({ kind: "audio", totalBytes: 20_044 });
  const { audio } = await speak({ outputFormat, providerOptions: { mistral: { expressiveness: 2 } } });
  const isMp3 = outputFormat === "mp3";
  const samples = firstBytes(createAudioSource(isMp3 ? "mp3" : "pcm"), isMp3 ? 20_044 : 20_000);
  const whole = isMp3 ? samples : Buffer.concat([endlessWavHeader(24_000), samples]);
  expect(whole.equals(audio.uint8Array)).toBe(true);
  expect(upstream.requests.at(-1)?.json).toEqual({
    model: "voxtral-mini-tts-3-0",
    input: text,
    voice_id: voice,
    expressiveness: 2,
    response_format: outputFormat,
    stream: false,
  });
});

test("the AI SDK's client understands the stand-in's refusals", async () => {
  expect(await errorOf(speak({}, "wrong"))).toEqual({ statusCode: 401, body: { detail: "Unauthorized" } });
  const unknown = mistralError(404, "invalid_voice", "1902", "Voice 'nobody' not found.");
  expect(await errorOf(speak({ voice: "nobody" }))).toEqual({ statusCode: 404, body: unknown });
});

test("OpenAI's client is refused for the fields of its own", async () => {
  const client = new OpenAI({ apiKey: "test-key", baseURL: `${upstream.baseUrl}/v1`, maxRetries: 0 });
  const asked = client.audio.speech.create({ model: "voxtral-mini-tts-3-0", input: text, voice });
  await expect(asked).rejects.toMatchObject({
    status: 422,
    error: { message: { detail: [{ loc: ["body", "voice"], msg: "Extra inputs are not permitted" }] } },
  });
});
