import type { ProviderManifest } from "../contract.ts";

/** Servers of one's own that speak as the web UI of Stable Diffusion does: AUTOMATIC1111, Forge, SD.Next, sd.cpp. */
export const sdapi: ProviderManifest = {
  slug: "sdapi",
  defaultBaseUrl: "",
  needsAddress: true,
  needsKey: false,
  takesKey: true,
  readSettings: async (endpoint) => (await import("./settings.ts")).readSdapiSettings(endpoint),
  async create({ http }) {
    const { createSdapiAdapter } = await import("./image.ts");
    return { image: createSdapiAdapter({ http }) };
  },
};
