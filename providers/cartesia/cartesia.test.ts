import { expect, test } from "vitest";
import { cartesiaError, startCartesiaUpstream } from "../../test/upstreams/cartesia.ts";
import { createAudioSource, firstBytes } from "../../test/upstreams/stand-in/audio-source.ts";
import { attempt } from "../adapter.suite.ts";
import { createSpeechSetup, describeRawSpeech, type VendorError } from "../speech-upstream.suite.ts";
import { cartesia } from "./index.ts";

const body =
  (code: string | null, title = "Something") =>
  (message: string) =>
    cartesiaError(code, title, message);

/** Shapes from the vendor's page on errors. */
const errors: readonly VendorError[] = [
  ["bad request", 400, body(null, "Bad request"), "invalid_request"],
  ["in words alone", 400, (message) => `Invalid request: ${message}`, "invalid_request"],
  ["unauthorized", 401, body(null, "Unauthorized"), "credentials"],
  ["quota_exceeded", 402, body("quota_exceeded"), "credentials"],
  ["quota_exceeded as too many requests", 429, body("quota_exceeded"), "credentials"],
  ["forbidden", 403, body(null, "Forbidden"), "credentials"],
  ["voice_not_found", 404, body("voice_not_found"), "invalid_request"],
  ["concurrency_limited", 429, body("concurrency_limited"), "overloaded"],
  ["internal", 500, body(null, "Internal server error"), "upstream"],
  ["unavailable", 503, body(null, "Unavailable"), "overloaded"],
];

const headers = { authorization: "Bearer sk-the-right-one", "cartesia-version": "2026-08-14" };
const vendor = {
  manifest: cartesia,
  startUpstream: startCartesiaUpstream,
  call: {
    upstreamModel: "sonic-3-2026-01-12",
    voice: "f786b574-daa5-4673-aa0c-cbe3e8534c02",
    speed: 1.2,
  },
  formats: ["mp3", "pcm"],
} as const;
const [model_id, voice] = [vendor.call.upstreamModel, vendor.call.voice];

describeRawSpeech("Cartesia", {
  ...vendor,
  errors,
  requests: [
    [
      { input: "Hi.", format: "mp3", speed: 1, options: { generation_config: { speed: 0.6 } } },
      {
        path: "/tts/bytes",
        json: {
          model_id,
          transcript: "Hi.",
          voice,
          output_format: { container: "mp3", bit_rate: 128_000, sample_rate: 24_000 },
        },
        headers,
      },
    ],
    [
      { input: "Hi.", format: "pcm", options: { language: "en", generation_config: { emotion: "calm" } } },
      {
        path: "/tts/bytes",
        json: {
          model_id,
          transcript: "Hi.",
          voice,
          language: "en",
          output_format: { container: "raw", encoding: "pcm_s16le", sample_rate: 24_000 },
          generation_config: { emotion: "calm", speed: 1.2 },
        },
        headers,
      },
    ],
  ],
  reports: [[{}, undefined]],
  hostileOptions: {
    transcript: "x",
    model_id: "x",
    voice: { id: "x" },
    output_format: { container: "raw" },
    generation_config: { speed: 0.6 },
  },
});

test("of a WAV the samples are handed on, at its own rate; cut at any byte it never looks whole", async () => {
  const { upstream, adapter, connection, call, close } = await createSpeechSetup(vendor);
  try {
    const speak = async (cutAfterBytes?: number) => {
      upstream.next({
        kind: "audio",
        totalBytes: 64,
        chunkBytes: 1,
        ...(cutAfterBytes !== undefined && { cutAfterBytes }),
      });
      const asked = { ...call, format: "wav", sampleRateHz: 44_100 } as const;
      const answer = await adapter.synthesize(asked, attempt(connection).context);
      return { answer, audio: Buffer.concat(await Array.fromAsync(answer.audio)) };
    };
    const { answer, audio } = await speak();
    expect(answer).toMatchObject({ format: "pcm", sampleRateHz: 44_100, channels: 1 });
    expect(audio.equals(firstBytes(createAudioSource("pcm"), 20))).toBe(true);
    for (let bytes = 0; bytes < 64; bytes += 1) {
      await expect(speak(bytes), String(bytes)).rejects.toMatchObject({ kind: "network" });
    }
  } finally {
    await close();
  }
});
