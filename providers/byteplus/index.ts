import type { ProviderManifest } from "../contract.ts";

/** BytePlus ModelArk, ByteDance's cloud outside China: images of the Seedream models. */
export const byteplus: ProviderManifest = {
  slug: "byteplus",
  defaultBaseUrl: "https://ark.ap-southeast.bytepluses.com/api/v3",
  needsKey: true,
  async create({ http }) {
    const { createImageAdapter } = await import("./image.ts");
    return { image: createImageAdapter(http) };
  },
};
