import type { ProviderManifest } from "../contract.ts";

/** fal: apps of many authors behind one queue. An endpoint's upstream model is the app's path. */
export const fal: ProviderManifest = {
  slug: "fal",
  defaultBaseUrl: "https://queue.fal.run",
  keyHosts: ["fal.run"],
  needsKey: true,
  async create(dependencies) {
    const { createSpeechAdapter } = await import("./speech.ts");
    const { createImageAdapter } = await import("./image.ts");
    return { speech: createSpeechAdapter(dependencies), image: createImageAdapter(dependencies) };
  },
};
