import type { AspectRatio, PixelSize, Resolution } from "../../providers/catalog/image.ts";

type Sizes = Partial<Record<Resolution, readonly [long: number, short: number]>>;

/**
 * The pixels that people mean by a ratio and a tier: those of screens, and of the image models that came first. All of
 * them are exactly of their ratio and, by the rule for pixels (tierOf), of their tier; but 3840x2160, which the world
 * calls 4K and that rule 2K.
 */
const usualSizes: Partial<Record<AspectRatio, Sizes>> = {
  "3:2": { "1K": [1536, 1024] },
  "4:3": { "512": [640, 480], "1K": [1024, 768], "2K": [2048, 1536], "4K": [4096, 3072] },
  "5:4": { "512": [640, 512], "1K": [1280, 1024], "2K": [2560, 2048] },
  "16:9": { "512": [640, 360], "1K": [1280, 720], "2K": [2560, 1440], "4K": [3840, 2160] },
  "19.5:9": { "1K": [1560, 720], "2K": [3120, 1440] },
  "20:9": { "1K": [1600, 720], "2K": [3200, 1440] },
};

/** The usual pixels of a ratio and a tier, an upright ratio's being those of the lying one; undefined: none are usual. */
export function usualSize(aspectRatio: AspectRatio, tier: Resolution): PixelSize | undefined {
  const lying = usualSizes[aspectRatio]?.[tier];
  if (lying !== undefined) return { width: lying[0], height: lying[1] };
  const [across, down] = aspectRatio.split(":");
  const upright = usualSizes[`${down}:${across}` as AspectRatio]?.[tier];
  return upright === undefined ? undefined : { width: upright[1], height: upright[0] };
}
