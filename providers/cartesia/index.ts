import type { ProviderManifest } from "../contract.ts";

/** Cartesia. */
export const cartesia: ProviderManifest = {
  slug: "cartesia",
  defaultBaseUrl: "https://api.cartesia.ai",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
