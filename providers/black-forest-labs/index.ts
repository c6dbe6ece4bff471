import type { ProviderManifest } from "../contract.ts";

/** Black Forest Labs, at its own address or at one of its regions (`https://api.eu.bfl.ai`). */
export const blackForestLabs: ProviderManifest = {
  slug: "black-forest-labs",
  defaultBaseUrl: "https://api.bfl.ai",
  // A task is asked after on the cluster that has it, such as api.eu1.bfl.ai.
  keyHosts: ["bfl.ai"],
  needsKey: true,
  async create(dependencies) {
    const { createImageAdapter } = await import("./image.ts");
    return { image: createImageAdapter(dependencies) };
  },
};
