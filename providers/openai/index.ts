import type { ProviderManifest } from "../contract.ts";
import { createImageAdapter } from "../openai-compatible/image.ts";
import { createSpeechAdapter } from "../openai-compatible/speech.ts";

/** OpenAI, at its own address or at one that speaks exactly as it does. */
export const openai: ProviderManifest = {
  slug: "openai",
  defaultBaseUrl: "https://api.openai.com",
  needsKey: true,
  create: ({ http }) => ({
    speech: createSpeechAdapter({ http, path: "/v1/audio/speech" }),
    image: createImageAdapter({
      http,
      generationsPath: "/v1/images/generations",
      editsPath: "/v1/images/edits",
    }),
  }),
};
