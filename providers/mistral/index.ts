import type { ProviderManifest } from "../contract.ts";

/** Mistral AI: speech by its Voxtral models. */
export const mistral: ProviderManifest = {
  slug: "mistral",
  defaultBaseUrl: "https://api.mistral.ai",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
