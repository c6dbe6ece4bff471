import sharp, { type Sharp } from "sharp";
import type { ImageFormat } from "../contract.ts";

/** How a picture is to be encoded. */
export interface EncodeOptions {
  readonly format: ImageFormat;
  /** 0 to 100, where 100 is the best quality; for jpeg and webp. */
  readonly compression: number | undefined;
  readonly transparent: boolean;
  /** Enlarges to this size and blurs: for previews. */
  readonly enlarge?: { readonly width: number; readonly height: number; readonly blur: number };
}

/** An encoded picture. */
export interface EncodedImage {
  /** Owns its buffer, so that it can be moved to another thread. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly mediaType: string;
}

const usualQuality = { jpeg: 88, webp: 84 } as const;

/** Draws markup into pixels and encodes them; svg is the markup itself. */
export async function encodeImage(svg: string, options: EncodeOptions): Promise<EncodedImage> {
  const { format, transparent, enlarge } = options;
  if (format === "svg") return { bytes: new TextEncoder().encode(svg), mediaType: "image/svg+xml" };
  let image = sharp(Buffer.from(svg));
  if (enlarge !== undefined) {
    const { width, height, blur } = enlarge;
    image = image.resize(width, height, { fit: "fill", kernel: "cubic" }).blur(blur);
  }
  if (!transparent) image = image.flatten({ background: "#ffffff" });
  const encoded = await withFormat(image, format, options.compression).toBuffer();
  return { bytes: new Uint8Array(encoded), mediaType: `image/${format}` };
}

function withFormat(image: Sharp, format: "png" | "jpeg" | "webp", compression: number | undefined) {
  switch (format) {
    case "png":
      return image.png({ compressionLevel: 6, palette: false });
    case "jpeg":
      return image.jpeg({ quality: qualityOf(compression ?? usualQuality.jpeg), mozjpeg: false });
    case "webp":
      return image.webp({ quality: qualityOf(compression ?? usualQuality.webp), effort: 2 });
  }
}

/** The encoders count from 1. */
function qualityOf(compression: number): number {
  return Math.min(100, Math.max(1, Math.round(compression)));
}
