import type { ProviderManifest } from "../contract.ts";

/** ComfyUI servers of one's own, which draw by workflows of one's own. */
export const comfyui: ProviderManifest = {
  slug: "comfyui",
  defaultBaseUrl: "",
  needsAddress: true,
  needsKey: false,
  takesKey: true,
  readSettings: async (endpoint, readFile) =>
    await (await import("./settings.ts")).readComfyuiSettings(endpoint, readFile),
  async create({ http, webSocket }) {
    const { createComfyuiAdapter } = await import("./image.ts");
    return { image: createComfyuiAdapter({ http, webSocket }) };
  },
};
