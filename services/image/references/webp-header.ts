import { decodedBytesOf, HeaderProblem, type ImageHeader } from "./image-header.ts";

/** "RIFF", the size, "WEBP". */
const containerBytes = 12;
const chunkHeaderBytes = 8;
/** A still image has at most seven of known kinds. */
const maxChunks = 1024;
const animationFlag = 2;

/** What libwebp keeps of the whole image for each pixel: the pixels of lossless data; of a mask also the mask. */
const bytesAPixel = { lossy: 1, lossless: 5, masked: 6 } as const;

interface Found {
  width: number;
  height: number;
  pixels: keyof typeof bytesAPixel | undefined;
  animated: boolean;
  metadataBytes: number;
}

/** Reads a WebP's header (RFC 9649); undefined where it is not whole. Throws HeaderProblem. */
export function readWebpHeader(bytes: Buffer): ImageHeader | undefined {
  const found: Found = { width: 0, height: 0, pixels: undefined, animated: false, metadataBytes: 0 };
  let seen = 0;
  for (let start = containerBytes; start + chunkHeaderBytes <= bytes.length; ) {
    if (++seen > maxChunks) throw new HeaderProblem(`has more than ${maxChunks} chunks`);
    const length = bytes.readUInt32LE(start + 4);
    const data = bytes.subarray(start + chunkHeaderBytes, start + chunkHeaderBytes + length);
    readChunk(bytes.toString("latin1", start, start + 4), data, found);
    start += chunkHeaderBytes + length + (length % 2);
  }
  const { width, height, pixels, animated, metadataBytes } = found;
  if (width === 0 || height === 0 || (pixels === undefined && !animated)) return undefined;
  const wholeBytes = width * height * bytesAPixel[pixels ?? "lossless"];
  return {
    width,
    height,
    animated,
    decodedBytes: decodedBytesOf({ height, rowBytes: width * 4, wholeBytes, metadataBytes }),
  };
}

function readChunk(type: string, data: Buffer, found: Found): void {
  switch (type) {
    case "VP8X":
      if (data.length < 10) return;
      if (((data[0] ?? 0) & animationFlag) !== 0) found.animated = true;
      hasSize(found, data.readUIntLE(4, 3) + 1, data.readUIntLE(7, 3) + 1);
      return;
    case "VP8 ":
      if (data.length < 10) return;
      found.pixels ??= "lossy";
      hasSize(found, data.readUInt16LE(6) & 0x3fff, data.readUInt16LE(8) & 0x3fff);
      return;
    case "VP8L":
      if (data.length < 5) return;
      found.pixels ??= "lossless";
      hasSize(found, (data.readUInt32LE(1) & 0x3fff) + 1, ((data.readUInt32LE(1) >>> 14) & 0x3fff) + 1);
      return;
    case "ALPH":
      found.pixels = "masked";
      return;
    case "ANIM":
    case "ANMF":
      found.animated = true;
      return;
    default:
      found.metadataBytes += data.length;
  }
}

/** The canvas and the picture say it each; the decoder refuses where they differ. */
function hasSize(found: Found, width: number, height: number): void {
  found.width = Math.max(found.width, width);
  found.height = Math.max(found.height, height);
}
