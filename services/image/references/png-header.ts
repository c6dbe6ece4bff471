import { decodedBytesOf, HeaderProblem, type ImageHeader } from "./image-header.ts";

/** Length, type and checksum of a chunk. */
const frameBytes = 12;
const signatureBytes = 8;
const headerDataBytes = 13;
/** Usual encoders cut 20 MiB into some thousand. */
const maxChunks = 65_536;
/** What a deflated byte can become at most, and what libvips and libpng unpack at most of all texts, bytes. */
const mostInflated = 1032;
const mostInflatedTexts = 40 * 1024 * 1024;

/** Channels by colour type as libvips reads them, with an alpha channel wherever one may be. */
const channelsByColorType: Readonly<Record<number, number>> = { 0: 2, 2: 4, 3: 4, 4: 2, 6: 4 };

const typeOf = (name: string) => Buffer.from(name, "latin1").readUInt32BE();
const chunkTypes = { end: typeOf("IEND"), data: typeOf("IDAT"), animation: typeOf("acTL") } as const;
const deflatedTypes: ReadonlySet<number> = new Set(["zTXt", "iTXt", "iCCP"].map(typeOf));

interface Chunks {
  readonly animated: boolean;
  readonly metadataBytes: number;
  readonly deflatedBytes: number;
}

/** Reads a PNG's header (W3C PNG, third edition); undefined where it is not whole. Throws HeaderProblem. */
export function readPngHeader(bytes: Buffer): ImageHeader | undefined {
  const dataAt = signatureBytes + 8;
  if (bytes.length < dataAt + headerDataBytes || bytes.toString("latin1", 12, 16) !== "IHDR")
    return undefined;
  const [width, height] = [bytes.readUInt32BE(dataAt), bytes.readUInt32BE(dataAt + 4)];
  const [depth = 0, colorType = 0, , , interlace] = bytes.subarray(dataAt + 8, dataAt + headerDataBytes);
  const channels = channelsByColorType[colorType];
  if (channels === undefined || width === 0 || height === 0) return undefined;
  const rowBytes = width * channels * (depth === 16 ? 2 : 1);
  const { animated, metadataBytes, deflatedBytes } = readChunks(bytes);
  const textBytes = Math.min(mostInflatedTexts, deflatedBytes * mostInflated);
  // Of an interlaced image no row is whole before the last pass over it.
  const wholeBytes = textBytes + (interlace === 0 ? 0 : height * rowBytes);
  return {
    width,
    height,
    animated,
    decodedBytes: decodedBytesOf({ height, rowBytes, wholeBytes, metadataBytes }),
  };
}

/** Walks over all chunks without looking into them. */
function readChunks(bytes: Buffer): Chunks {
  let [animated, seen, metadataBytes, deflatedBytes] = [false, 0, 0, 0];
  let hasData = false;
  for (let start = signatureBytes; start + frameBytes <= bytes.length; ) {
    if (++seen > maxChunks) throw new HeaderProblem(`has more than ${maxChunks} chunks`);
    const length = bytes.readUInt32BE(start);
    const type = bytes.readUInt32BE(start + 4);
    if (type === chunkTypes.end) break;
    if (type === chunkTypes.animation && !hasData) animated = true;
    if (type === chunkTypes.data) hasData = true;
    else metadataBytes += length;
    if (deflatedTypes.has(type)) deflatedBytes += length;
    start += frameBytes + length;
  }
  return { animated, metadataBytes: Math.min(metadataBytes, bytes.length), deflatedBytes };
}
