import sharp from "sharp";
import { mediaTypes, sniffImageType } from "../../../lib/http/image-type.ts";
import type { PixelSize } from "../../../providers/catalog/image.ts";
import type { ReferenceImage } from "../../../providers/contract.ts";
import { type DecodeRoom, maxDecodedBytes, maxImagePixels } from "./decode-budget.ts";
import { HeaderProblem, type ImageHeader } from "./image-header.ts";
import { readImageHeader } from "./read-image-header.ts";

/** What is wrong with a reference, in words that go after its name. Thrown by checkReference. */
export class ReferenceProblem extends Error {
  override readonly name = "ReferenceProblem";
}

/** Longest side of an image that is decoded at all: that of a JPEG. */
const maxSide = 65_535;
/** Longest that one image may be decoded, seconds. */
const timeoutSeconds = 20;

/** A reference and its sides in pixels, as its header has them. */
export interface CheckedReference extends ReferenceImage, PixelSize {}

/** A reference that may be decoded. */
export interface DecodableReference extends CheckedReference {
  readonly header: ImageHeader;
}

/**
 * Finds out what bytes are, whatever their sender called them: a still PNG, JPEG or WebP image whose decoding is known to
 * take no more than it may. Nothing is decoded; takes about a millisecond a megabyte. Throws ReferenceProblem.
 */
export function readReference(bytes: Uint8Array): DecodableReference {
  const type = sniffImageType(bytes);
  if (type !== "png" && type !== "jpeg" && type !== "webp") {
    throw new ReferenceProblem("is not a PNG, JPEG or WebP image");
  }
  const header = readHeader(bytes);
  return { bytes, mediaType: mediaTypes[type], width: header.width, height: header.height, header };
}

/**
 * Makes sure that an image is whole, by decoding it once there is room for that. Throws ReferenceProblem, or the
 * signal's reason when it is aborted; `onWork` hears of the work, which an abort does not end.
 */
export async function decodeReference(
  { bytes, header }: DecodableReference,
  room: DecodeRoom,
  signal: AbortSignal,
  onWork: (work: Promise<void>) => void,
): Promise<void> {
  try {
    await room.run(header.decodedBytes, signal, () => {
      const work = decode(bytes, header);
      onWork(work);
      return work;
    });
  } catch (thrown) {
    signal.throwIfAborted();
    throw broken(thrown);
  }
}

function readHeader(bytes: Uint8Array): ImageHeader {
  let header: ImageHeader | undefined;
  try {
    header = readImageHeader(bytes);
  } catch (thrown) {
    if (thrown instanceof HeaderProblem) throw new ReferenceProblem(thrown.message, { cause: thrown });
    throw thrown;
  }
  if (header === undefined) throw broken();
  const { width, height, animated, decodedBytes } = header;
  if (width * height > maxImagePixels) {
    throw new ReferenceProblem(`has more than ${maxImagePixels / 1e6} megapixels`);
  }
  if (Math.max(width, height) > maxSide) throw new ReferenceProblem(`is longer than ${maxSide} pixels`);
  if (animated) throw new ReferenceProblem("is animated; a still image is needed");
  if (decodedBytes > maxDecodedBytes) {
    throw new ReferenceProblem(
      `takes more than ${maxDecodedBytes / 2 ** 20} MiB to decode; it is smaller without interlacing, progressive scans or 16 bits a channel`,
    );
  }
  return header;
}

/** Reads the image to its end and keeps nothing of it: what is cut short or damaged throws. */
async function decode(bytes: Uint8Array, { width, height }: ImageHeader): Promise<void> {
  // The decoder takes no more for it than its header was believed to say.
  await sharp(bytes, { limitInputPixels: width * height, failOn: "error", sequentialRead: true })
    .timeout({ seconds: timeoutSeconds })
    .resize(8, 8, { fit: "fill", kernel: "nearest" })
    .raw()
    .toBuffer();
}

function broken(cause?: unknown): ReferenceProblem {
  return new ReferenceProblem("is damaged or incomplete", cause === undefined ? undefined : { cause });
}
