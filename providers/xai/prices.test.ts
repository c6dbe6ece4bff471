import { expect, test } from "vitest";
import { mostImagesCanCost } from "../catalog/endpoint-price.ts";
import { builtInCatalogDirectory, loadCatalog } from "../catalog/load.ts";
import { builtInProviders } from "../manifests.ts";

test("what an image costs, and what it starts from", async () => {
  const providerSlugs = builtInProviders.map(({ slug }) => slug);
  const catalog = await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs });
  const cents = (model: string, variant: object, references = 0) => {
    const [endpoint] = catalog.imageModel(model)?.endpoints ?? [];
    const asked = { images: 1, megapixels: 1, references, referenceMegapixels: references };
    const cost = mostImagesCanCost(endpoint?.prices ?? [], { ...asked, textCharacters: 10, variant });
    return Number(cost) / 1e7;
  };
  const newest = "xai/grok-imagine-image-2.0";
  const [small, large] = [{ resolution: "1K" }, { resolution: "2K" }];
  expect(cents(newest, {})).toBe(6);
  expect(cents(newest, small)).toBe(6);
  expect(cents(newest, large)).toBe(8);
  expect(cents(newest, { ...small, quality: "medium" })).toBe(6);
  expect(cents(newest, { ...large, quality: "medium" })).toBe(8);
  expect(cents(newest, { quality: "low" })).toBe(4);
  expect(cents(newest, { ...small, quality: "low" })).toBe(4);
  expect(cents(newest, { ...large, quality: "low" }, 2)).toBe(8);
  expect(cents("xai/grok-imagine-image", large, 1)).toBe(2.2);
});
