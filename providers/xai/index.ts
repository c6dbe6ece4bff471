import type { ProviderManifest } from "../contract.ts";

/** xAI: Grok Imagine's images and its voices. */
export const xai: ProviderManifest = {
  slug: "xai",
  defaultBaseUrl: "https://api.x.ai",
  needsKey: true,
  async create(dependencies) {
    const { createSpeechAdapter } = await import("./speech.ts");
    const { createImageAdapter } = await import("./image.ts");
    return { speech: createSpeechAdapter(dependencies), image: createImageAdapter(dependencies) };
  },
};
