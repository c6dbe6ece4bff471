import type { ProviderManifest } from "../contract.ts";

/** The vendor's own unit: recraft.ai/docs/api-reference/pricing. */
const unitsPerUsd = 1000;

/** Recraft, whose upstream draws as OpenAI's did: `settings: { response_format: b64_json }` in its catalogue. */
export const recraft: ProviderManifest = {
  slug: "recraft",
  defaultBaseUrl: "https://external.api.recraft.ai",
  needsKey: true,
  async create({ http }) {
    const { createImageAdapter } = await import("../openai-compatible/image.ts");
    const [generationsPath, editsPath] = ["/v1/images/generations", "/v1/images/imageToImage"];
    const costUsdOf = ({ credits }: Readonly<Record<string, unknown>>) =>
      typeof credits === "number" ? credits / unitsPerUsd : undefined;
    return { image: createImageAdapter({ http, generationsPath, editsPath, costUsdOf }) };
  },
};
