import type { ProviderManifest } from "../contract.ts";

/** ElevenLabs; an address within a region (`api.eu.residency.elevenlabs.io`) is set as its base URL. */
export const elevenlabs: ProviderManifest = {
  slug: "elevenlabs",
  defaultBaseUrl: "https://api.elevenlabs.io",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("./speech.ts");
    return { speech: createSpeechAdapter({ http }) };
  },
};
