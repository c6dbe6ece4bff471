import { parseUsd } from "../../lib/money/nano-usd.ts";
import type { ImageBillable, ImageCapabilities, ImagePrice, PixelSize } from "./image.ts";
import type { ImageEntry, PriceEntry } from "./schema.ts";

/** What a checked entry says that an endpoint can do with images. */
export function toImage(entry: ImageEntry): ImageCapabilities {
  return {
    formats: entry.formats,
    sizes: toSizes(entry),
    autoSize: entry.auto_size ?? false,
    maxN: entry.max_n,
    qualities: entry.qualities ?? [],
    backgrounds: entry.backgrounds ?? [],
    compression: entry.compression ?? false,
    seed: entry.seed ?? false,
    maxReferences: entry.max_references ?? 0,
    maxReferenceMegapixels: entry.max_reference_megapixels,
    pixelsPerMegapixel: entry.pixels_per_megapixel,
    mask: entry.mask ?? false,
    streaming: entry.streaming ?? false,
    maxStreamedN: entry.max_streamed_n ?? entry.max_n,
    maxPromptCharacters: entry.max_prompt_characters,
  };
}

function toSizes({ sizes = [], grid }: ImageEntry): ImageCapabilities["sizes"] {
  if (grid === undefined) return { kind: "list", sizes: sizes.map(toPixelSize) };
  return {
    kind: "grid",
    aspectRatios: grid.aspect_ratios,
    resolutions: grid.resolutions,
    defaultResolution: grid.default_resolution,
    multipleOf: grid.multiple_of ?? 1,
    minPixels: grid.min_pixels,
    maxPixels: grid.max_pixels,
    maxSide: grid.max_side,
    maxRatio: grid.max_ratio,
  };
}

function toPixelSize(text: string): PixelSize {
  const [width = 0, height = 0] = text.split("x").map(Number);
  return { width, height };
}

/** One line of a checked price list of an image endpoint. */
export function toImagePrice(entry: PriceEntry): ImagePrice {
  return {
    // The check has let no other pass, and none without its unit.
    billable: entry.billable as ImageBillable,
    unit: entry.unit ?? "image",
    variant: entry.variant ?? "",
    nanoUsdPerMillion: parseUsd(entry.usd_per_million),
    mostTokensEach: BigInt(entry.most_tokens_each ?? 0),
  };
}
