import type { ProviderManifest } from "../contract.ts";

/** LMNT. */
export const lmnt: ProviderManifest = {
  slug: "lmnt",
  defaultBaseUrl: "https://api.lmnt.com",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
