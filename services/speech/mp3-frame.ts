/** Bytes of an ID3v2 tag's header, and of an MPEG audio frame's. */
export const tagHeaderBytes = 10;
/** Bytes of an MPEG audio frame's header. */
export const frameHeaderBytes = 4;

const kilobitsMpeg1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const kilobitsMpeg2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const layerIii = 1;
const samplesASecond = [44_100, 48_000, 32_000];

/** What the header of an MPEG audio layer III frame says (ISO/IEC 11172-3 and 13818-3). */
export interface Mp3Frame {
  /** With its header; undefined where the header does not state it (free format). */
  readonly bytes: number | undefined;
  readonly samples: number;
  readonly sampleRateHz: number;
}

/** Reads four bytes; undefined when they are no such header. */
export function readMp3Frame(header: number): Mp3Frame | undefined {
  const version = (header >>> 19) & 3;
  if (header >>> 21 !== 0x7ff || version === 1 || ((header >>> 17) & 3) !== layerIii) return undefined;
  const isMpeg1 = version === 3;
  const kilobits = (isMpeg1 ? kilobitsMpeg1 : kilobitsMpeg2)[(header >>> 12) & 15];
  const hertz = samplesASecond[(header >>> 10) & 3];
  if (kilobits === undefined || hertz === undefined) return undefined;
  const sampleRateHz = hertz / (isMpeg1 ? 1 : version === 2 ? 2 : 4);
  const samples = isMpeg1 ? 1152 : 576;
  const padding = (header >>> 9) & 1;
  const bytes = Math.floor(((samples / 8) * kilobits * 1000) / sampleRateHz) + padding;
  return { bytes: kilobits === 0 ? undefined : bytes, samples, sampleRateHz };
}

/** The length of an ID3v2 tag with its header, by the header's ten bytes. */
export function tagBytes(header: Uint8Array): number {
  // A number of 28 bits in four bytes whose highest bits are 0.
  return (
    tagHeaderBytes + header.subarray(6, tagHeaderBytes).reduce((sum, byte) => sum * 128 + (byte & 127), 0)
  );
}
