import type { ProviderManifest } from "../contract.ts";

/** Deepgram; an address within a region (`api.eu.deepgram.com`) or of one's own is set as its base URL. */
export const deepgram: ProviderManifest = {
  slug: "deepgram",
  defaultBaseUrl: "https://api.deepgram.com",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
