import type { ProviderManifest } from "../contract.ts";

/** The engine that is part of the product: no key, no network. */
export const local: ProviderManifest = {
  slug: "local",
  defaultBaseUrl: "",
  needsKey: false,
  async create() {
    const { createLocalProvider } = await import("./engine.ts");
    return createLocalProvider();
  },
};
