import { startOpenAiUpstream } from "../../test/upstreams/openai/openai.ts";
import { describeCompatibleImage } from "./image.suite.ts";
import { createCompatibleManifest } from "./manifest.ts";
import { describeCompatibleSpeech } from "./speech.suite.ts";

const manifest = createCompatibleManifest({
  slug: "acme",
  baseUrl: "http://acme.example",
  network: { privateAddress: true },
  auth: { header: "authorization", scheme: "Bearer" },
  keyIsOptional: true,
  headers: { "x-title": "Us" },
  query: {},
  paths: { speech: "/v1/audio/speech" },
  edits: "multipart",
  settings: { stream: "sse" },
});

describeCompatibleSpeech("a configured provider that answers events", {
  manifest,
  startUpstream: startOpenAiUpstream,
  call: { upstreamModel: "gpt-4o-mini-tts", voice: "alloy" },
  formats: ["mp3", "pcm"],
});

describeCompatibleImage("a configured provider", {
  manifest,
  startUpstream: startOpenAiUpstream,
  call: { upstreamModel: "gpt-image-1.5" },
  formats: ["png", "jpeg", "webp"],
  several: true,
  previews: true,
});
