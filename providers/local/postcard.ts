import type { ImageModel } from "./image-model.ts";

const sizes: ReadonlySet<string> = new Set(["1024x1024", "1536x1024", "1024x1536"]);

/**
 * Faded pictures with a border of paper: one at a time, as png or jpeg, in three sizes, with no previews, references,
 * transparency or choice of quality. It stands for the poorer of the vendors' models.
 */
export const postcardModel: ImageModel = {
  look: "postcard",
  formats: new Set(["png", "jpeg"]),
  maxImages: 1,
  maxReferences: 0,
  streams: false,
  qualities: false,
  transparency: false,
  saysUnrecognized: false,
  usualSize: { width: 1_536, height: 1_024 },
  allows: (width, height) => sizes.has(`${width}x${height}`),
};
