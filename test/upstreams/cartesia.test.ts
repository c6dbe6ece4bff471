import Cartesia, { APIError } from "@cartesia/cartesia-js";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startCartesiaUpstream } from "./cartesia.ts";
import { createAudioSource, firstBytes } from "./stand-in/audio-source.ts";
import type { SpeechUpstream } from "./stand-in/raw-speech.ts";

let upstream: SpeechUpstream;

beforeAll(async () => {
  upstream = await startCartesiaUpstream();
});
afterAll(async () => await upstream.close());

type Asked = Parameters<Cartesia["tts"]["generate"]>[0];

const asked = {
  model_id: "sonic-3.6-2026-08-27",
  transcript: "Hello.",
  voice: "f786b574-daa5-4673-aa0c-cbe3e8534c02",
  output_format: { container: "mp3", sample_rate: 44_100, bit_rate: 128_000 },
} as const satisfies Asked;

async function speak(more: Partial<Asked> = {}, apiKey = "test-key"): Promise<Buffer> {
  const client = new Cartesia({ apiKey, baseURL: upstream.baseUrl, maxRetries: 0 });
  const response = await client.tts.generate({ ...asked, ...more });
  return Buffer.from(await response.arrayBuffer());
}

test.for([
  ["mp3", asked.output_format, 0],
  ["pcm", { container: "raw", encoding: "pcm_s16le", sample_rate: 24_000 }, 0],
  ["pcm", { container: "wav", encoding: "pcm_s16le", sample_rate: 24_000 }, 44],
] as const)("the vendor's client gets %s as %o", async ([format, output_format, headBytes]) => {
  upstream.next({ kind: "audio", totalBytes: 100_001, chunkBytes: 6_000 });
  const audio = await speak({ output_format, generation_config: { speed: 1.5, emotion: "calm" } });
  expect(audio).toHaveLength(100_001);
  const whole = firstBytes(createAudioSource(format), 100_001 - headBytes);
  expect(whole.equals(audio.subarray(headBytes))).toBe(true);
  expect(audio.toString("latin1", 0, headBytes).startsWith("RIFF")).toBe(headBytes > 0);
  expect(upstream.requests.at(-1)).toMatchObject({
    path: "/tts/bytes",
    json: { ...asked, output_format, generation_config: { speed: 1.5, emotion: "calm" } },
    fate: "finished",
  });
});

test.for<[string, Parameters<typeof speak>, number, string]>([
  ["a wrong key", [{}, "wrong"], 401, "Unauthorized"],
  ["a model that is not there", [{ model_id: "sonic-9" }], 404, "Model not found"],
  ["a voice that is not there", [{ voice: { id: "nobody" } }], 404, "Voice not found"],
  ["too fast", [{ generation_config: { speed: 2 } }], 400, "Bad request"],
  ["nothing to say", [{ transcript: "" }], 400, "Bad request"],
])("refuses it: %s", async ([, given, status, title]) => {
  const thrown: unknown = await speak(...given).catch((error: unknown) => error);
  expect(thrown).toBeInstanceOf(APIError);
  expect(thrown).toMatchObject({ status, error: { title } });
});

test("refuses it when told so, and breaks off when told so", async () => {
  upstream.next({ kind: "error", status: 429 }, { kind: "audio", cutAfterBytes: 5_000 });
  await expect(speak()).rejects.toMatchObject({ status: 429, error: { error_code: "concurrency_limited" } });
  await expect(speak()).rejects.toThrow();
  expect(upstream.requests.at(-1)?.fate).toBe("cut");
});
