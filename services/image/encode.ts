import sharp, { type Sharp } from "sharp";
import type { ImageType } from "../../lib/http/image-type.ts";
import { type ImageCall, type ImageFormat, ProviderError } from "../../providers/contract.ts";
import { type DecodeRoom, maxImagePixels } from "./references/decode-budget.ts";
import type { ImageHeader } from "./references/image-header.ts";
import { readImageHeader } from "./references/read-image-header.ts";

/** How to encode, and within what. */
export interface TranscodeOptions {
  /** 0 to 100 for jpeg and webp: 100 keeps the most detail. Undefined: this module's default. */
  readonly compression: number | undefined;
  /** `opaque` puts the image on white also where the format has an alpha channel. */
  readonly background: ImageCall["background"];
  readonly room: DecodeRoom;
  readonly signal: AbortSignal;
}

/** Longest that one image may be worked on, seconds. */
const timeoutSeconds = 60;
/** Four channels turned, and four as the encoder of WebP wants them. */
const encodingBytesAPixel = 8;
const white = "#ffffff";

/** Whether an image of one encoding can be made into another. Markup is neither drawn nor made of pixels. */
export function canTranscode(from: ImageType, to: ImageFormat): boolean {
  return from === to || (from !== "svg" && to !== "svg");
}

/**
 * An image that came from an upstream in the encoding that was asked for; the same bytes where it has it already. Keeps
 * transparency in png and webp, puts jpeg on white; leaves metadata out. Throws ProviderError (bad_answer) for what
 * can't be decoded, is too large or is markup on one side only; the signal's reason when it is aborted.
 */
export async function transcodeImage(
  bytes: Uint8Array,
  from: ImageType,
  to: ImageFormat,
  options: TranscodeOptions,
): Promise<Uint8Array> {
  if (from === to) return bytes;
  if (!canTranscode(from, to)) {
    throw new ProviderError(
      "bad_answer",
      "The answer is markup where pixels were asked for, or the reverse.",
    );
  }
  const { room, signal } = options;
  try {
    return await room.run(transcodeBytes(readImageHeader(bytes)), signal, () => encode(bytes, to, options));
  } catch (thrown) {
    signal.throwIfAborted();
    throw new ProviderError("bad_answer", "The image can't be decoded.", { cause: thrown });
  }
}

/** What decoding takes, and what turning and encoding hold of the whole image. Throws where it can't be known. */
function transcodeBytes(header: ImageHeader | undefined): number {
  if (header === undefined) throw new RangeError("no header");
  const { width, height, decodedBytes } = header;
  if (width * height > maxImagePixels) throw new RangeError("too many pixels");
  return decodedBytes + width * height * encodingBytesAPixel;
}

async function encode(bytes: Uint8Array, to: ImageFormat, options: TranscodeOptions): Promise<Uint8Array> {
  const image = sharp(bytes, { limitInputPixels: maxImagePixels, failOn: "error", sequentialRead: true })
    .timeout({ seconds: timeoutSeconds })
    .autoOrient();
  if (to === "jpeg" || options.background === "opaque") image.flatten({ background: white });
  return writeAs(image, to, options.compression).toBuffer();
}

function writeAs(image: Sharp, to: ImageFormat, compression: number | undefined): Sharp {
  // Encoders know no quality 0.
  const quality = compression === undefined ? undefined : Math.max(1, compression);
  switch (to) {
    case "jpeg":
      return image.jpeg({ quality: quality ?? 90 });
    case "webp":
      return image.webp({ quality: quality ?? 85, effort: 2 });
    default:
      return image.png({ compressionLevel: 6 });
  }
}
