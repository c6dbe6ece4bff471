import { type AspectRatio, imageBillables, resolutions } from "./image.ts";
import type { ImageEntry, PriceEntry } from "./schema.ts";

/** Takes a fault and the path within an endpoint where it is. */
export type Report = (path: string, fault: string) => void;

/** Reports what is wrong with the image capabilities of an endpoint beyond their shape. */
export function checkImage(image: ImageEntry, report: Report): void {
  const { formats, sizes, grid, backgrounds, mask, max_references } = image;
  if ((sizes === undefined) === (grid === undefined)) report("image", "needs either sizes or a grid");
  if (grid !== undefined) checkGrid(grid, report);
  const transparent = backgrounds?.includes("transparent") ?? false;
  if (transparent && !formats.includes("png") && !formats.includes("webp")) {
    report("image.backgrounds", "transparent needs png or webp among the formats");
  }
  if (mask === true && max_references === undefined) report("image.mask", "needs max_references");
}

function checkGrid(grid: NonNullable<ImageEntry["grid"]>, report: Report): void {
  const { resolutions, default_resolution, min_pixels, max_pixels, max_side, max_ratio, multiple_of } = grid;
  if (!resolutions.includes(default_resolution)) {
    report("image.grid.default_resolution", `${default_resolution} is not among the resolutions`);
  }
  if (min_pixels > max_pixels) report("image.grid.min_pixels", "is more than max_pixels");
  if (max_side * max_side < min_pixels) report("image.grid.max_side", "leaves no room for min_pixels");
  if (max_side < (multiple_of ?? 1)) report("image.grid.multiple_of", "is more than max_side");
  if (max_ratio === undefined) return;
  const beyond = grid.aspect_ratios.find((ratio) => longToShort(ratio) > max_ratio);
  if (beyond !== undefined) report("image.grid.aspect_ratios", `${beyond} is beyond max_ratio`);
}

function longToShort(ratio: AspectRatio): number {
  const [width = 1, height = 1] = ratio.split(":").map(Number);
  return Math.max(width / height, height / width);
}

/** Reports what is wrong with the price list of an image endpoint beyond its shape. */
export function checkImagePrices(prices: readonly PriceEntry[], image: ImageEntry, report: Report): void {
  const variants = new Set<string>([
    ...(image.qualities ?? []),
    ...(image.sizes ?? []),
    // Listed sizes have tiers too, by their area.
    ...(image.grid?.resolutions ?? resolutions),
  ]);
  const seen = new Set<string>();
  for (const [index, price] of prices.entries()) {
    const at = `prices.${index}`;
    const { billable, unit, variant } = price;
    checkImageLine(at, price, report);
    const line = [billable, unit, variant].join(" ");
    if (seen.has(line)) report(at, `${billable} has a price already`);
    seen.add(line);
    for (const word of variant?.split(" ") ?? []) {
      if (!variants.has(word))
        report(`${at}.variant`, `${word} is no quality, tier or size of this endpoint`);
    }
  }
  if (!prices.some(({ billable }) => billable === "output_image")) {
    report("prices", "output_image has no price");
  }
}

function checkImageLine(at: string, price: PriceEntry, report: Report): void {
  const { billable, unit, most_tokens_each: most, most_per_input_character } = price;
  if (!imageBillables.some((known) => known === billable)) {
    report(`${at}.billable`, `${billable} has no meaning for images`);
  }
  if (unit === undefined) report(at, "unit is missing");
  if (unit === "token" && most === undefined) {
    report(at, "most_tokens_each is missing: tokens are counted only afterwards");
  }
  if (unit !== "token" && most !== undefined) report(at, "most_tokens_each has a meaning for tokens only");
  if (billable !== "output_image" && unit === "first_megapixel") {
    report(at, "first megapixels are those of images that come out");
  }
  if (billable.endsWith("_text") && unit !== "token") report(at, "text is billed by the token");
  if (most_per_input_character !== undefined) {
    report(at, "most_per_input_character has no meaning for images");
  }
}
