import type { PaintRequest } from "@media-gateway/painter";
import { type ImageCall, type ImageFormat, ProviderError } from "../contract.ts";

/** One of the built-in models of images: what it can make, and how it looks. */
export interface ImageModel {
  readonly look: PaintRequest["look"];
  readonly formats: ReadonlySet<ImageFormat>;
  readonly maxImages: number;
  readonly maxReferences: number;
  readonly streams: boolean;
  /** Whether it has control over the quality; otherwise it paints at medium. */
  readonly qualities: boolean;
  readonly transparency: boolean;
  /** Whether it says which words of the prompt it passed over. */
  readonly saysUnrecognized: boolean;
  /** What it makes if the call says nothing. */
  readonly usualSize: { readonly width: number; readonly height: number };
  /** Whether it can make this size. */
  allows(width: number, height: number): boolean;
}

const leastSide = 8;
const mostSide = 12_288;
/** The pixels of a square of 4K, and a little more for rounded sides. */
const mostPixels = 4_096 ** 2 * 1.02;

/** Every format, size up to 4K and aspect ratio; transparent grounds, previews, ten at a time. */
export const painterModel: ImageModel = {
  look: "plain",
  formats: new Set(["png", "jpeg", "webp", "svg"]),
  maxImages: 10,
  maxReferences: 16,
  streams: true,
  qualities: true,
  transparency: true,
  saysUnrecognized: true,
  usualSize: { width: 1_024, height: 1_024 },
  allows: (width, height) =>
    [width, height].every((side) => Number.isInteger(side) && side >= leastSide && side <= mostSide) &&
    width * height <= mostPixels,
};

/** Throws ProviderError for a call that a model can't answer. */
export function checkImageCall(model: ImageModel, call: ImageCall): void {
  const { width, height } = call.size ?? model.usualSize;
  const transparent = call.background === "transparent";
  const faults: readonly (readonly [boolean, string])[] = [
    [!model.formats.has(call.format), "The engine does not make this format."],
    [
      !(Number.isInteger(call.n) && call.n >= 1 && call.n <= model.maxImages),
      "The engine does not make so many images.",
    ],
    [!model.allows(width, height), "The engine does not make this size."],
    [call.references.length > model.maxReferences, "The engine does not take so many references."],
    [call.stream && !model.streams, "The engine does not stream."],
    [transparent && !model.transparency, "The engine does not make transparent backgrounds."],
    [transparent && call.format === "jpeg", "The format has no transparency."],
    [call.seed !== undefined && !Number.isSafeInteger(call.seed), "The engine does not take this seed."],
  ];
  for (const [isFault, message] of faults) if (isFault) throw new ProviderError("invalid_request", message);
}

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
