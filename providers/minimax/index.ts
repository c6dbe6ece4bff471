import type { ProviderManifest } from "../contract.ts";

/** MiniMax, its platform outside of China: speech. */
export const minimax: ProviderManifest = {
  slug: "minimax",
  defaultBaseUrl: "https://api.minimax.io",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
