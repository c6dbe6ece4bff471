import sharp from "sharp";
import { mediaTypes, sniffImageType } from "../../lib/http/image-type.ts";
import type { ReferenceImage } from "../../providers/contract.ts";
import { maxImagePixels, type PixelBudget } from "./pixel-budget.ts";

/** What is wrong with a reference, in words that go after its name. Thrown by checkReference. */
export class ReferenceProblem extends Error {
  override readonly name = "ReferenceProblem";
}

/** Longest that one image may be decoded, seconds. */
const timeoutSeconds = 20;

/**
 * Makes sure that bytes are a whole, still PNG, JPEG or WebP image of bearable size, whatever their sender called them.
 * The size is known before anything is decoded. Throws ReferenceProblem, or the signal's reason when it is aborted.
 */
export async function checkReference(
  bytes: Uint8Array,
  budget: PixelBudget,
  signal: AbortSignal,
): Promise<ReferenceImage> {
  const type = sniffImageType(bytes);
  if (type !== "png" && type !== "jpeg" && type !== "webp") {
    throw new ReferenceProblem("is not a PNG, JPEG or WebP image");
  }
  const pixels = await pixelsOf(bytes, signal);
  if (type === "png" && isAnimatedPng(bytes)) throw animated();
  try {
    await budget.run(pixels, signal, () => decode(bytes));
  } catch (thrown) {
    signal.throwIfAborted();
    throw broken(thrown);
  }
  return { bytes, mediaType: mediaTypes[type] };
}

/** Width times height, from the header alone. */
async function pixelsOf(bytes: Uint8Array, signal: AbortSignal): Promise<number> {
  // The header is read without a limit, so that too large an image is told from a broken one.
  const { width, height, pages } = await sharp(bytes, { limitInputPixels: false })
    .metadata()
    .catch((thrown: unknown) => {
      throw broken(thrown);
    });
  signal.throwIfAborted();
  if (width * height > maxImagePixels) {
    throw new ReferenceProblem(`has more than ${maxImagePixels / 1e6} megapixels`);
  }
  if (pages !== undefined && pages > 1) throw animated();
  return width * height;
}

/** Reads the image to its end and keeps nothing of it: what is cut short or damaged throws. */
async function decode(bytes: Uint8Array): Promise<void> {
  await sharp(bytes, { limitInputPixels: maxImagePixels, failOn: "error", sequentialRead: true })
    .timeout({ seconds: timeoutSeconds })
    .resize(8, 8, { fit: "fill", kernel: "nearest" })
    .raw()
    .toBuffer();
}

/** Whether an acTL chunk comes before the image data, as in every animated PNG (W3C PNG, third edition). */
function isAnimatedPng(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const frame = 12;
  for (let start = 8; start + frame <= bytes.length; ) {
    const type = String.fromCharCode(...bytes.subarray(start + 4, start + 8));
    if (type === "acTL") return true;
    if (type === "IDAT") return false;
    start += frame + view.getUint32(start);
  }
  return false;
}

function animated(): ReferenceProblem {
  return new ReferenceProblem("is animated; a still image is needed");
}

function broken(cause: unknown): ReferenceProblem {
  return new ReferenceProblem("is damaged or incomplete", { cause });
}
