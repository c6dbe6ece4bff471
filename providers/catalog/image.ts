import type { ImageFormat } from "../contract.ts";

/** The aspect ratios of the public interface, width to height. */
export const aspectRatios = [
  ...(["1:1", "1:2", "1:4", "1:8", "2:1", "2:3", "3:2", "3:4", "4:1", "4:3", "4:5"] as const),
  ...(["5:4", "8:1", "9:16", "16:9", "9:19.5", "19.5:9", "9:20", "20:9", "9:21", "21:9"] as const),
] as const;

/** One of the aspect ratios of the public interface. */
export type AspectRatio = (typeof aspectRatios)[number];

/** The tiers of pixel sizes, from small to large. */
export const resolutions = ["512", "1K", "2K", "4K"] as const;

/** A tier of pixel sizes; its side is about 512, 1024, 2048 or 4096 pixels. */
export type Resolution = (typeof resolutions)[number];

/** A size of an image in the words of the public interface. */
export interface ImageShape {
  readonly aspectRatio: AspectRatio;
  readonly resolution: Resolution;
}

/** A size of an image in pixels. */
export interface PixelSize {
  readonly width: number;
  readonly height: number;
}

/** An endpoint that makes a few sizes; the first is its default. */
export interface ListedSizes {
  readonly kind: "list";
  readonly sizes: readonly PixelSize[];
}

/** An endpoint that makes any size within its bounds; the pixels of a ratio and a tier are derived. */
export interface SizeGrid {
  readonly kind: "grid";
  readonly aspectRatios: readonly AspectRatio[];
  readonly resolutions: readonly Resolution[];
  readonly defaultResolution: Resolution;
  /** Both sides are multiples of this. */
  readonly multipleOf: number;
  readonly minPixels: number;
  readonly maxPixels: number;
  /** Longest side. */
  readonly maxSide: number;
  /** Longest side to shortest; undefined: no bound of its own. */
  readonly maxRatio: number | undefined;
}

/** What an endpoint can do with images. */
export interface ImageCapabilities {
  /** Encodings the upstream makes itself. */
  readonly formats: readonly ImageFormat[];
  readonly sizes: ListedSizes | SizeGrid;
  /** Whether the endpoint chooses the size itself where the caller asks for none. */
  readonly autoSize: boolean;
  readonly maxN: number;
  /** Empty: the upstream has no control of quality. */
  readonly qualities: readonly ("low" | "medium" | "high")[];
  /** Empty: images are opaque, without control. */
  readonly backgrounds: readonly ("transparent" | "opaque")[];
  /** Whether the upstream takes a compression for the jpeg and webp it makes. */
  readonly compression: boolean;
  readonly seed: boolean;
  /** 0: no references. */
  readonly maxReferences: number;
  /** Of one reference; undefined: as many as this gateway takes. */
  readonly maxReferenceMegapixels?: number | undefined;
  /** As the vendor bills: 1,000,000 unless given, 1,048,576 where 1024x1024 is one. */
  readonly pixelsPerMegapixel?: number | undefined;
  /** Whether a mask may say where the first reference changes. */
  readonly mask: boolean;
  /** Whether previews come while the work goes on. */
  readonly streaming: boolean;
  /** Most images of a request with previews; with more it is answered without. */
  readonly maxStreamedN: number;
  /** Unicode code points. */
  readonly maxPromptCharacters: number;
}

/** What an image is billed for. */
export const imageBillables = [
  "output_image",
  "output_text",
  "input_image",
  "input_reference",
  "input_text",
] as const;

/** What one line of an image price list bills for. */
export type ImageBillable = (typeof imageBillables)[number];

/** By what an image is billed. Megapixels are begun ones; the first and the further ones are those of each image. */
export const imageUnits = [
  "request",
  "image",
  "megapixel",
  "first_megapixel",
  "further_megapixel",
  "token",
] as const;

/** By what one line of an image price list bills. */
export type ImageUnit = (typeof imageUnits)[number];

/** One line of an image price list. */
export interface ImagePrice {
  readonly billable: ImageBillable;
  readonly unit: ImageUnit;
  /**
   * What the line is for: a quality, a tier, a pixel size, or several of them with blanks between; empty: for all that have
   * no line of their own.
   */
  readonly variant: string;
  readonly nanoUsdPerMillion: bigint;
  /**
   * For tokens, which are counted afterwards: most of them for one output image, one reference or one character of the
   * prompt, by what is billed. 0n for other units.
   */
  readonly mostTokensEach: bigint;
}
