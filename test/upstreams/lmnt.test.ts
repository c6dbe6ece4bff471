import Lmnt, { APIError } from "lmnt-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startLmntUpstream } from "./lmnt.ts";
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";

let upstream: SpeechUpstream;

beforeAll(async () => {
  upstream = await startLmntUpstream();
});
afterAll(async () => await upstream.close());

type Asked = Parameters<Lmnt["speech"]["generate"]>[0];

const asked: Asked = { text: "Hello.", voice: "leah" };

async function speak(more: Partial<Asked> = {}, apiKey = "test-key") {
  const client = new Lmnt({ apiKey, baseURL: upstream.baseUrl, maxRetries: 0 });
  const response = await client.speech.generate({ ...asked, ...more });
  return { response, audio: Buffer.from(await response.arrayBuffer()) };
}

test.for([
  ["mp3", "mp3", "audio/mpeg"],
  ["pcm", "pcm_s16le", "application/octet-stream"],
] as const)("the vendor's client gets %s", async ([source, format, contentType]) => {
  upstream.next({ kind: "audio", totalBytes: 100_001, chunkBytes: 6_000 });
  const { audio, response } = await speak({ format, language: "en", temperature: 0.3 });
  expect(firstBytes(createAudioSource(source), 100_001).equals(audio)).toBe(true);
  expect(response.headers.get("content-type")).toBe(contentType);
  expect(upstream.requests.at(-1)).toMatchObject({
    path: "/v1/ai/speech/bytes",
    json: { ...asked, format, language: "en", temperature: 0.3 },
    fate: "finished",
  });
});

test.for<[string, Parameters<typeof speak>, number, string]>([
  ["a wrong key", [{}, "wrong"], 401, "authentication_error"],
  ["a voice that is not there", [{ voice: "nobody" }], 404, "not_found_error"],
  ["a text too long", [{ text: "a".repeat(5_001) }], 400, "invalid_request_error"],
])("refuses it: %s", async ([, given, status, type]) => {
  const thrown: unknown = await speak(...given).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(APIError);
  expect(thrown).toMatchObject({ status, type });
});

test("refuses it when told so, and breaks off when told so", async () => {
  upstream.next({ kind: "error", status: 429 }, { kind: "audio", cutAfterBytes: 5_000 });
  await expect(speak()).rejects.toMatchObject({ status: 429, type: "rate_limit_error" });
  await expect(speak()).rejects.toThrow();
  expect(upstream.requests.at(-1)?.fate).toBe("cut");
});
