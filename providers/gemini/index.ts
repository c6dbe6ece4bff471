import type { ProviderManifest } from "../contract.ts";

/** Google's Gemini API (AI Studio): speech and images of models that answer content with content. */
export const gemini: ProviderManifest = {
  slug: "gemini",
  defaultBaseUrl: "https://generativelanguage.googleapis.com",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    const { createImageAdapter } = await import("./image.ts");
    return { speech: createSpeechAdapter(http), image: createImageAdapter(http) };
  },
};
