import { sniffImageType } from "../../../lib/http/image-type.ts";
import type { ImageHeader } from "./image-header.ts";
import { readJpegHeader } from "./jpeg-header.ts";
import { readPngHeader } from "./png-header.ts";
import { readWebpHeader } from "./webp-header.ts";

/**
 * Reads the header of a PNG, JPEG, WebP or GIF without looking at its pixels; undefined where it is none of these or
 * its header is not whole. Throws HeaderProblem.
 */
export function readImageHeader(bytes: Uint8Array): ImageHeader | undefined {
  const content = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (sniffImageType(bytes)) {
    case "png":
      return readPngHeader(content);
    case "jpeg":
      return readJpegHeader(content);
    case "webp":
      return readWebpHeader(content);
    case "gif":
      return readGifHeader(content);
    default:
      return undefined;
  }
}

const gifHeaderBytes = 13;

/** Of its first picture; whether others follow is not looked at. */
function readGifHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < gifHeaderBytes) return undefined;
  const [width, height] = [bytes.readUInt16LE(6), bytes.readUInt16LE(8)];
  // The canvas and a picture on it, each in four channels.
  return { width, height, animated: false, decodedBytes: width * height * 8 };
}
