import { blackForestLabs } from "../../providers/black-forest-labs/index.ts";
import { cartesia } from "../../providers/cartesia/index.ts";
import type { ImageCall, ProviderManifest, SpeechCall } from "../../providers/contract.ts";
import { deepgram } from "../../providers/deepgram/index.ts";
import { elevenlabs } from "../../providers/elevenlabs/index.ts";
import { gemini } from "../../providers/gemini/index.ts";
import { openai } from "../../providers/openai/index.ts";
import { startFluxUpstream } from "../../test/upstreams/black-forest-labs.ts";
import { startCartesiaUpstream } from "../../test/upstreams/cartesia.ts";
import { startDeepgramUpstream } from "../../test/upstreams/deepgram.ts";
import { startElevenLabsUpstream } from "../../test/upstreams/elevenlabs.ts";
import { startGemini } from "../../test/upstreams/gemini.ts";
import { startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import { createImageSource } from "../../test/upstreams/stand-in/image-source.ts";
import type { StandIn } from "../../test/upstreams/stand-in/stand-in-server.ts";

/** The key that every stand-in knows. */
export const apiKey = "test-key";

/** One way in which an answer comes through an adapter, beside the others of its medium. */
export type AdapterKind = {
  readonly name: string;
  readonly manifest: ProviderManifest;
  /** Starts its upstream, which keeps no log. */
  start(): Promise<StandIn>;
} & ({ readonly speech: SpeechCall } | { readonly image: ImageCall });

const audioBytes = 80 * 1024;
const pieceBytes = 4096;
const audio = { kind: "audio", totalBytes: audioBytes, chunkBytes: pieceBytes } as const;
const imageBytes = 1024 * 1024;

const speech: SpeechCall = {
  upstreamModel: "tts-1",
  input: "Every adapter speaks this sentence.",
  voice: "alloy",
  format: "mp3",
  sampleRateHz: 24_000,
  channels: 1,
  speed: 1,
  options: {},
  settings: {},
};

const image: ImageCall = {
  upstreamModel: "gpt-image-1.5",
  prompt: "A boat that every adapter draws.",
  n: 1,
  size: { width: 1024, height: 1024 },
  shape: { aspectRatio: "1:1", resolution: "1K" },
  quality: "auto",
  background: "auto",
  format: "png",
  compression: undefined,
  seed: undefined,
  references: [],
  stream: false,
  options: {},
  settings: {},
};

/** The first of each medium is what the others are measured by. */
export const adapterKinds: readonly AdapterKind[] = [
  {
    name: "openai, audio itself",
    manifest: openai,
    start: () => startOpenAiUpstream({ apiKey, log: false, otherwise: audio }),
    speech,
  },
  {
    name: "openai, base64 in events",
    manifest: openai,
    start: () => startOpenAiUpstream({ apiKey, log: false, otherwise: audio }),
    speech: { ...speech, upstreamModel: "gpt-4o-mini-tts-2025-12-15", settings: { stream: "sse" } },
  },
  {
    name: "elevenlabs, audio itself",
    manifest: elevenlabs,
    start: () => startElevenLabsUpstream({ apiKey, log: false, behave: () => audio }),
    speech: { ...speech, upstreamModel: "eleven_flash_v2_5", voice: "EXAVITQu4vr4xnSDxMaL" },
  },
  {
    name: "deepgram, audio itself",
    manifest: deepgram,
    start: () => startDeepgramUpstream({ apiKey, log: false, behave: () => audio }),
    speech: { ...speech, upstreamModel: "aura-2", voice: "thalia-en" },
  },
  {
    name: "gemini, samples in events",
    manifest: gemini,
    start: () => startGemini(apiKey, () => ({ totalBytes: audioBytes, pieceBytes }), { log: false }),
    speech: { ...speech, upstreamModel: "gemini-3.8-flash-tts", voice: "Kore", format: "pcm" },
  },
  {
    name: "cartesia, samples in a WAV",
    manifest: cartesia,
    start: () => startCartesiaUpstream({ apiKey, log: false, behave: () => audio }),
    speech: {
      ...speech,
      upstreamModel: "sonic-3.6-2026-08-27",
      voice: "f786b574-daa5-4673-aa0c-cbe3e8534c02",
      format: "wav",
    },
  },
  {
    name: "openai, base64 in JSON",
    manifest: openai,
    start: () => startOpenAiUpstream({ apiKey, log: false, otherwiseImage: { kind: "image", imageBytes } }),
    image,
  },
  {
    name: "gemini, base64 in JSON",
    manifest: gemini,
    start: () => startGemini(apiKey, () => ({ imageBytes }), { log: false }),
    image: { ...image, upstreamModel: "gemini-3-pro-image" },
  },
  {
    // Ready when it is first asked after; the first byte is mostly the pause before that.
    name: "black-forest-labs, by address",
    manifest: blackForestLabs,
    start: async () => {
      const spec = {
        format: "png",
        width: 1024,
        height: 1024,
        isTransparent: false,
        shade: 90,
        bytes: imageBytes,
      } as const;
      const sample = await createImageSource().image(spec);
      return await startFluxUpstream({ apiKey, log: false, usual: { states: ["Ready"], sample } });
    },
    image: { ...image, upstreamModel: "flux-2-pro" },
  },
];
