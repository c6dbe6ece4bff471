import { createElevenLabs } from "@ai-sdk/elevenlabs";
import { APICallError, generateSpeech } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startElevenLabsUpstream } from "./elevenlabs.ts";
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";

let upstream: SpeechUpstream;

beforeAll(async () => {
  upstream = await startElevenLabsUpstream();
});
afterAll(async () => await upstream.close());

const text = "Hello.";
const voice = "JBFqnCBsd6RMkjVDRZzb";

function speak(more: Partial<Parameters<typeof generateSpeech>[0]> = {}, apiKey = "test-key") {
  const here = (url: unknown) => String(url).replace("https://api.elevenlabs.io", upstream.baseUrl);
  const client = createElevenLabs({ apiKey, fetch: (url, init) => fetch(here(url), init) });
  const model = client.speech("eleven_multilingual_v2");
  return generateSpeech({ model, text, voice, maxRetries: 0, ...more });
}

async function errorOf(speech: Promise<unknown>): Promise<{ statusCode: number | undefined; body: unknown }> {
  const error: unknown = await speech.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!APICallError.isInstance(error)) throw error;
  return { statusCode: error.statusCode, body: JSON.parse(error.responseBody ?? "null") };
}

test.for([
  ["mp3", "mp3_44100_128", "audio/mpeg"],
  ["pcm_24000", "pcm_24000", "audio/pcm"],
] as const)("the AI SDK's client gets %s", async ([outputFormat, asked, contentType]) => {
  upstream.next({ kind: "audio", totalBytes: 100_001, chunkBytes: 6_000 });
  const voiceSettings = { stability: 0.5, similarityBoost: 0.75 };
  const { audio, responses } = await speak({
    outputFormat,
    speed: 1.1,
    providerOptions: { elevenlabs: { voiceSettings, seed: 7 } },
  });
  const whole = firstBytes(createAudioSource(outputFormat === "mp3" ? "mp3" : "pcm"), 100_001);
  expect(whole.equals(audio.uint8Array)).toBe(true);
  expect(responses[0]?.headers).toMatchObject({ "content-type": contentType, "character-cost": "6" });
  expect(upstream.requests.at(-1)).toMatchObject({
    path: `/v1/text-to-speech/${voice}?output_format=${asked}`,
    json: {
      text,
      model_id: "eleven_multilingual_v2",
      voice_settings: { stability: 0.5, similarity_boost: 0.75, speed: 1.1 },
      seed: 7,
    },
    fate: "finished",
  });
});

test.for<[string, Parameters<typeof speak>, number, string]>([
  ["a wrong key", [{}, "wrong"], 401, "invalid_api_key"],
  ["a voice that is not there", [{ voice: "nobody" }], 404, "voice_not_found"],
  ["an encoding that is not there", [{ outputFormat: "mp3_1" }], 400, "invalid_output_format"],
  ["too fast", [{ speed: 1.3 }], 400, "invalid_voice_settings"],
  ["a text too long", [{ text: "a".repeat(10_001) }], 400, "max_character_limit_exceeded"],
])("refuses it: %s", async ([, asked, statusCode, code]) => {
  expect(await errorOf(speak(...asked))).toMatchObject({ statusCode, body: { detail: { code } } });
});

test("refuses it when told so, and breaks off when told so", async () => {
  upstream.next({ kind: "error", status: 429 }, { kind: "audio", cutAfterBytes: 5_000 });
  const { statusCode, body } = await errorOf(speak());
  expect(statusCode).toBe(429);
  expect(body).toMatchObject({ detail: { code: "too_many_concurrent_requests" } });
  await expect(speak()).rejects.toThrow();
  expect(upstream.requests.at(-1)?.fate).toBe("cut");
});
