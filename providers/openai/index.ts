import type { ProviderManifest } from "../contract.ts";

/** OpenAI, at its own address or at one that speaks exactly as it does. */
export const openai: ProviderManifest = {
  slug: "openai",
  defaultBaseUrl: "https://api.openai.com",
  needsKey: true,
  async create({ http }) {
    const { createSpeechAdapter } = await import("../openai-compatible/speech.ts");
    const { createImageAdapter } = await import("../openai-compatible/image.ts");
    const [generationsPath, editsPath] = ["/v1/images/generations", "/v1/images/edits"];
    return {
      speech: createSpeechAdapter({ http, path: "/v1/audio/speech" }),
      image: createImageAdapter({ http, generationsPath, editsPath }),
    };
  },
};
