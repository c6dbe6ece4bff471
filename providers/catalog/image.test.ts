import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { loadCatalog } from "./load.ts";

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "catalog-image-"));
});
afterAll(async () => await rm(directory, { recursive: true }));

const grid = {
  aspect_ratios: ["1:1", "16:9"],
  resolutions: ["1K", "2K"],
  default_resolution: "1K",
  multiple_of: 16,
  min_pixels: 655_360,
  max_pixels: 8_294_400,
  max_side: 3840,
  max_ratio: 3,
};
const image = {
  formats: ["png", "webp"],
  grid,
  auto_size: true,
  max_n: 4,
  qualities: ["low", "high"],
  backgrounds: ["transparent"],
  compression: true,
  seed: true,
  max_references: 2,
  mask: true,
  streaming: true,
  max_streamed_n: 2,
  max_prompt_characters: 100,
};
const bare = { formats: ["jpeg"], sizes: ["1024x768", "64x64"], max_n: 1, max_prompt_characters: 1 };
const model = {
  id: "acme/brush",
  permaslug: "acme/brush-2025-01-02",
  name: "Brush",
  description: "Draws.",
  created: "2025-01-02",
  medium: "image",
};
const price = { billable: "output_image", unit: "image", usd_per_million: "40000", variant: "high" };
const tokens = { billable: "output_image", unit: "token", usd_per_million: "30", most_tokens_each: 9000 };
const endpoint = {
  id: "00000001-0000-4000-8000-000000000000",
  model: "acme/brush",
  upstream_model: "brush-v1",
  image,
  prices: [price, tokens],
};

const capabilities = {
  formats: ["png", "webp"],
  sizes: {
    kind: "grid",
    aspectRatios: ["1:1", "16:9"],
    resolutions: ["1K", "2K"],
    defaultResolution: "1K",
    multipleOf: 16,
    minPixels: 655_360,
    maxPixels: 8_294_400,
    maxSide: 3840,
    maxRatio: 3,
  },
  autoSize: true,
  maxN: 4,
  qualities: ["low", "high"],
  backgrounds: ["transparent"],
  compression: true,
  seed: true,
  maxReferences: 2,
  mask: true,
  streaming: true,
  maxStreamedN: 2,
  maxPromptCharacters: 100,
};

async function load(part: object = {}, modelPart: object = {}) {
  const file = {
    provider: { slug: "acme", name: "Acme" },
    models: [{ ...model, ...modelPart }],
    endpoints: [{ ...endpoint, ...part }],
  };
  await writeFile(join(directory, "acme.yaml"), stringify(file));
  return await loadCatalog({ directories: [directory], providerSlugs: ["acme"] });
}

describe("an image entry", () => {
  test("becomes an image model and its endpoint", async () => {
    const catalog = await load();
    expect(catalog.imageModels().map(({ id }) => id)).toEqual(["acme/brush"]);
    expect(catalog.speechModel("acme/brush")).toBeUndefined();
    expect(catalog.isKnownModel("acme/brush")).toBe(true);
    expect(catalog.imageModel("acme/brush")?.endpoints).toEqual([
      {
        id: endpoint.id,
        model: "acme/brush",
        permaslug: "acme/brush-2025-01-02",
        providerSlug: "acme",
        providerName: "Acme",
        upstreamModel: "brush-v1",
        passthrough: [],
        settings: {},
        prices: [
          {
            billable: "output_image",
            unit: "image",
            variant: "high",
            nanoUsdPerMillion: 40_000_000_000_000n,
            mostTokensEach: 0n,
          },
          {
            billable: "output_image",
            unit: "token",
            variant: "",
            nanoUsdPerMillion: 30_000_000_000n,
            mostTokensEach: 9000n,
          },
        ],
        image: capabilities,
      },
    ]);
  });

  test("that says little can do little", async () => {
    const catalog = await load({ image: bare, prices: [{ ...tokens, usd_per_million: "0" }] });
    expect(catalog.imageModel("acme/brush")?.endpoints[0]?.image).toEqual({
      formats: ["jpeg"],
      sizes: {
        kind: "list",
        sizes: [
          { width: 1024, height: 768 },
          { width: 64, height: 64 },
        ],
      },
      autoSize: false,
      maxN: 1,
      qualities: [],
      backgrounds: [],
      compression: false,
      seed: false,
      maxReferences: 0,
      mask: false,
      streaming: false,
      maxStreamedN: 1,
      maxPromptCharacters: 1,
    });
  });

  test("is left out with its provider", async () => {
    const catalog = await load();
    const without = catalog.offeredBy(() => false);
    expect([without.imageModels(), without.isKnownModel("acme/brush")]).toEqual([[], false]);
    expect(catalog.offeredBy((slug) => slug === "acme").imageModels()).toHaveLength(1);
  });
});

describe("an image entry is refused for", () => {
  const drawn = (part: object) => ({ image: { ...image, ...part } });
  const onGrid = (part: object) => drawn({ grid: { ...grid, ...part } });
  const speech = { formats: ["mp3"], sample_rate_hz: 24_000, channels: 1, max_input_characters: 1 };

  test.each<[string, object, string]>([
    ["no sizes at all", drawn({ grid: undefined }), "image: needs either sizes or a grid"],
    ["sizes and a grid", drawn({ sizes: ["64x64"] }), "image: needs either sizes or a grid"],
    ["a size that is none", { image: { ...bare, sizes: ["2K"] } }, "image.sizes.0: must match pattern"],
    ["an unknown ratio", onGrid({ aspect_ratios: ["5:2"] }), "aspect_ratios.0: must be one of 1:1"],
    ["auto among its ratios", onGrid({ aspect_ratios: ["auto"] }), "aspect_ratios.0: must be one of"],
    ["an unknown tier", onGrid({ resolutions: ["8K"] }), "resolutions.0: must be one of 512, 1K"],
    ["a default that it lacks", onGrid({ default_resolution: "4K" }), "4K is not among the resolutions"],
    ["bounds without room", onGrid({ min_pixels: 9_000_000 }), "min_pixels: is more than max_pixels"],
    ["a side without room", onGrid({ max_side: 16 }), "max_side: leaves no room"],
    ["a ratio beyond its bound", onGrid({ max_ratio: 1.5 }), "16:9 is beyond max_ratio"],
    ["an unknown format", drawn({ formats: ["gif"] }), "image.formats.0: must be one of png, jpeg"],
    ["transparent jpeg", drawn({ formats: ["jpeg", "svg"] }), "transparent needs png or webp"],
    ["eleven images", drawn({ max_n: 11 }), "image.max_n: must be <= 10"],
    ["a mask without references", { image: { ...bare, mask: true } }, "image.mask: needs max_references"],
    ["17 references", drawn({ max_references: 17 }), "image.max_references: must be <= 16"],
    ["an unknown field", drawn({ colour: "red" }), "image: unknown field colour"],
    [
      "no price for what comes out",
      { prices: [{ ...tokens, billable: "input_text" }] },
      "output_image has no",
    ],
    [
      "a price of speech",
      { prices: [price, { ...tokens, billable: "input_character" }] },
      "no meaning for images",
    ],
    ["a price without unit", { prices: [{ ...price, unit: undefined }] }, "prices.0: unit is missing"],
    [
      "tokens without bound",
      { prices: [{ ...tokens, most_tokens_each: undefined }] },
      "most_tokens_each is miss",
    ],
    [
      "a bound without tokens",
      { prices: [{ ...price, most_tokens_each: 1 }] },
      "has a meaning for tokens only",
    ],
    ["text by the image", { prices: [price, { ...price, billable: "input_text" }] }, "billed by the token"],
    ["two prices of one thing", { prices: [tokens, tokens] }, "prices.1: output_image has a price already"],
    ["an unknown variant", { prices: [{ ...price, variant: "4K" }] }, "4K is no quality, tier or size"],
    ["capabilities of speech", { speech }, "speech: has no place here"],
    ["no capabilities", { image: undefined }, "image: is missing: acme/brush is a model of this medium"],
  ])("%s", async (_, part, fault) => {
    await expect(load(part)).rejects.toThrow(fault);
  });

  test("speech by the price of an image", async () => {
    const part = { image: undefined, speech, prices: [{ ...price, variant: undefined }] };
    await expect(load(part, { medium: "speech" })).rejects.toThrow("output_image has no meaning for speech");
  });
});
