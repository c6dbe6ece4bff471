import { expect, test } from "vitest";
import { builtInProviders } from "../manifests.ts";
import { mostImagesCanCost } from "./endpoint-price.ts";
import { builtInCatalogDirectory, loadCatalog } from "./load.ts";

/** What an endpoint's image costs in cents, with what it starts from. */
async function centsOf(model: string) {
  const providerSlugs = builtInProviders.map(({ slug }) => slug);
  const catalog = await loadCatalog({ directories: [builtInCatalogDirectory], providerSlugs });
  const [endpoint] = catalog.imageModel(model)?.endpoints ?? [];
  return (variant: object, references = 0, megapixels = 1) => {
    const asked = { images: 1, megapixels, references, referenceMegapixels: references };
    const cost = mostImagesCanCost(endpoint?.prices ?? [], { ...asked, textCharacters: 10, variant });
    return Number(cost) / 1e7;
  };
}

test("by tier and quality, with the vendor's own choice where none is named", async () => {
  const cents = await centsOf("xai/grok-imagine-image-2.0");
  const [small, large] = [{ resolution: "1K" }, { resolution: "2K" }];
  expect(cents({})).toBe(6);
  expect(cents(small)).toBe(6);
  expect(cents(large)).toBe(8);
  expect(cents({ ...small, quality: "medium" })).toBe(6);
  expect(cents({ ...large, quality: "medium" })).toBe(8);
  expect(cents({ quality: "low" })).toBe(4);
  expect(cents({ ...small, quality: "low" })).toBe(4);
  expect(cents({ ...large, quality: "low" }, 2)).toBe(8);
});

test("by a first megapixel and further ones, those of references among them", async () => {
  const cents = await centsOf("black-forest-labs/flux-2-pro");
  expect(cents({})).toBe(3);
  expect(cents({}, 0, 4)).toBe(7.5);
  expect(cents({}, 2, 1)).toBe(6);
});
