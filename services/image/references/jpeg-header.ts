import { decodedBytesOf, HeaderProblem, type ImageHeader } from "./image-header.ts";

const marker = {
  startOfImage: 0xd8,
  endOfImage: 0xd9,
  startOfScan: 0xda,
  baseline: 0xc0,
  extended: 0xc1,
  progressive: 0xc2,
} as const;

/** Encoders make about ten; each goes over the whole image. */
const maxScans = 64;
/** An ICC profile has up to 255, an extended XMP some hundred. */
const maxSegments = 4096;
const blockSide = 8;
const coefficientBytes = 2;

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly components: number;
  readonly progressive: boolean;
  /** Of all components, as multiples of 8 × 8 samples. */
  readonly blocks: number;
}

/**
 * Reads a JPEG's header (ITU-T T.81) and counts its scans; undefined where it is not whole, or neither baseline,
 * extended nor progressive. Throws HeaderProblem.
 */
export function readJpegHeader(bytes: Buffer): ImageHeader | undefined {
  let frame: Frame | undefined;
  let position = 2;
  for (let segments = 0; ; segments++) {
    if (segments > maxSegments) throw new HeaderProblem(`has more than ${maxSegments} segments`);
    while (bytes[position] === 0xff && bytes[position + 1] === 0xff) position++;
    const kind = bytes[position + 1];
    if (kind === undefined || bytes[position] !== 0xff || position + 4 > bytes.length) return undefined;
    if (kind === marker.startOfScan) break;
    if (isFrame(kind)) {
      if (kind > marker.progressive || frame !== undefined) return undefined;
      frame = readFrame(bytes.subarray(position + 4), kind === marker.progressive);
      if (frame === undefined) return undefined;
    }
    position += 2 + bytes.readUInt16BE(position + 2);
  }
  return frame === undefined ? undefined : headerOf(frame, bytes, position);
}

function headerOf(frame: Frame, bytes: Buffer, scanAt: number): ImageHeader {
  const { width, height, components, blocks } = frame;
  // Where the first scan has not all components, as in progressive images, no row is whole before the last scan.
  const isBuffered = frame.progressive || (bytes[scanAt + 4] ?? 0) < components;
  if (isBuffered && countScans(bytes, scanAt) > maxScans)
    throw new HeaderProblem(`has more than ${maxScans} scans`);
  const decodedBytes = decodedBytesOf({
    height,
    rowBytes: width * components,
    wholeBytes: isBuffered ? blocks * blockSide ** 2 * coefficientBytes : 0,
    metadataBytes: scanAt,
  });
  return { width, height, animated: false, decodedBytes };
}

/** Start of frame, of any kind; what lies between is tables. */
function isFrame(kind: number): boolean {
  return kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
}

/** `bytes` from the segment's precision on. */
function readFrame(bytes: Buffer, progressive: boolean): Frame | undefined {
  const components = bytes[5] ?? 0;
  if (components === 0 || components > 4 || bytes.length < 6 + 3 * components) return undefined;
  const [height, width] = [bytes.readUInt16BE(1), bytes.readUInt16BE(3)];
  if (height === 0 || width === 0) return undefined;
  const samplings = Array.from({ length: components }, (_, index) => bytes[7 + 3 * index] ?? 0);
  const across = samplings.map((sampling) => sampling >> 4);
  const down = samplings.map((sampling) => sampling & 15);
  if ([...across, ...down].some((factor) => factor < 1 || factor > 4)) return undefined;
  // Of each component as many blocks as its sampling says, for each begun unit of the largest sampling.
  const units =
    Math.ceil(width / (blockSide * Math.max(...across))) *
    Math.ceil(height / (blockSide * Math.max(...down)));
  const blocks = samplings.reduce((sum, sampling) => sum + units * (sampling >> 4) * (sampling & 15), 0);
  return { width, height, components, progressive, blocks };
}

/**
 * How many scans there are before the image's end, up to one more than are allowed. Within a scan 0xFF is followed by 0
 * or a restart; what else follows it begins a segment, whose content is passed over as the decoder does it.
 */
function countScans(bytes: Buffer, start: number): number {
  let scans = 0;
  for (let position = start; scans <= maxScans; ) {
    position = nextMarker(bytes, position);
    if (position + 4 > bytes.length || bytes[position + 1] === marker.endOfImage) break;
    if (bytes[position + 1] === marker.startOfScan) scans++;
    position += 2 + bytes.readUInt16BE(position + 2);
  }
  return scans;
}

/** Where the next segment begins; the end of the bytes when there is none. */
function nextMarker(bytes: Uint8Array, start: number): number {
  const end = bytes.length - 1;
  for (let position = start; position < end; position++) {
    if (bytes[position] !== 0xff) continue;
    const kind = bytes[position + 1] as number;
    const isRestart = kind >= 0xd0 && kind <= 0xd7;
    if (kind !== 0 && kind !== 0xff && !isRestart) return position;
  }
  return bytes.length;
}
