import { type PaintRequest, type PaletteColor, paintSvg } from "@media-gateway/painter";
import { move } from "piscina";
import sharp from "sharp";
import type { ImageFormat } from "../contract.ts";
import { type EncodedImage, encodeImage } from "./image-encode.ts";
import { paletteOf } from "./image-palette.ts";

/** What a thread of the images' pool does at a time: reads the colours of references, or paints one picture. */
export type ImageTask =
  | { readonly kind: "palette"; readonly images: readonly Uint8Array[] }
  | {
      readonly kind: "paint";
      readonly request: PaintRequest;
      readonly format: ImageFormat;
      /** 0 to 100, the best; for jpeg and webp. */
      readonly compression: number | undefined;
    };

/** What comes of a task; unreadable: a reference is no image that can be read. */
export type ImageResult =
  | { readonly kind: "palette"; readonly colors: readonly PaletteColor[] }
  | { readonly kind: "unreadable" }
  | ({ readonly kind: "image" } & EncodedImage);

/** Previews are no larger than a square of this side has pixels. */
const previewSide = 1_024;

// Other threads draw at the same time, and no picture is drawn twice.
sharp.concurrency(1);
sharp.cache(false);

/** Runs in a thread. A pure function: the same task always gives the same bytes. */
export async function runImageTask(task: ImageTask): Promise<ImageResult> {
  if (task.kind === "palette") return readPalette(task.images);
  const { request, format, compression } = task;
  const { zoom = 1, transparent } = request;
  const svg = paintSvg(request);
  const image =
    zoom === 1
      ? await encodeImage(svg, { format, compression, transparent })
      : await encodeImage(svg, {
          format: format === "svg" ? "png" : format,
          compression,
          transparent,
          enlarge: previewOf(request, zoom),
        });
  move(image.bytes);
  return { kind: "image", ...image };
}

function previewOf({ width, height }: PaintRequest, zoom: number) {
  const shrink = Math.min(1, previewSide / Math.sqrt(width * height));
  const pixels = (side: number) => Math.max(1, Math.round(side * shrink));
  return { width: pixels(width), height: pixels(height), blur: Math.max(0.6, 0.7 / zoom) };
}

async function readPalette(images: readonly Uint8Array[]): Promise<ImageResult> {
  try {
    return { kind: "palette", colors: await paletteOf(images) };
  } catch {
    return { kind: "unreadable" };
  }
}
