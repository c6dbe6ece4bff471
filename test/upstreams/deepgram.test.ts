import { createDeepgram } from "@ai-sdk/deepgram";
import { APICallError, generateSpeech } from "ai";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startDeepgramUpstream } from "./deepgram.ts";
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";

let upstream: SpeechUpstream;

beforeAll(async () => {
  upstream = await startDeepgramUpstream();
});
afterAll(async () => await upstream.close());

const text = "Hello.";

function speak(more: Partial<Parameters<typeof generateSpeech>[0]> = {}, apiKey = "test-key") {
  const here = (url: unknown) => String(url).replace("https://api.deepgram.com", upstream.baseUrl);
  const client = createDeepgram({ apiKey, fetch: (url, init) => fetch(here(url), init) });
  return generateSpeech({ model: client.speech("aura-2"), voice: "thalia", text, maxRetries: 0, ...more });
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
  ["mp3", "encoding=mp3", "audio/mpeg"],
  ["pcm", "encoding=linear16&container=none", "audio/l16;rate=24000;channels=1"],
] as const)("the AI SDK's client gets %s", async ([outputFormat, query, contentType]) => {
  upstream.next({ kind: "audio", totalBytes: 100_001, chunkBytes: 6_000 });
  const { audio, responses, providerMetadata } = await speak({ outputFormat });
  expect(firstBytes(createAudioSource(outputFormat), 100_001).equals(audio.uint8Array)).toBe(true);
  expect(responses[0]?.headers).toMatchObject({ "content-type": contentType });
  expect(providerMetadata.deepgram).toMatchObject({ modelName: "aura-2-thalia-en", charCount: 6 });
  expect(upstream.requests.at(-1)).toMatchObject({
    path: `/v1/speak?model=aura-2-thalia-en&${query}`,
    json: { text },
    fate: "finished",
  });
});

test.for<[string, Parameters<typeof speak>, number, string]>([
  ["a wrong key", [{}, "wrong"], 401, "INVALID_AUTH"],
  ["a voice that is not there", [{ voice: "nobody" }], 400, "Bad Request"],
  ["too fast", [{ speed: 2 }], 400, "INVALID_QUERY_PARAMETER"],
  ["a text too long", [{ text: "a".repeat(2_001) }], 413, "Payload Too Large"],
])("refuses it: %s", async ([, asked, statusCode, err_code]) => {
  expect(await errorOf(speak(...asked))).toMatchObject({ statusCode, body: { err_code } });
});

test("refuses it when told so, and breaks off when told so", async () => {
  upstream.next({ kind: "error", status: 429 }, { kind: "audio", cutAfterBytes: 5_000 });
  expect(await errorOf(speak())).toMatchObject({ statusCode: 429, body: { err_code: "Too Many Requests" } });
  await expect(speak()).rejects.toThrow();
  expect(upstream.requests.at(-1)?.fate).toBe("cut");
});
