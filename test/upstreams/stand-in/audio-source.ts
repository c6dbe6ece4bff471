/** Deterministic audio that does not compress, of any length, made once: for stand-in upstreams. */

/** The formats that it comes in. */
export type SourceFormat = "mp3" | "pcm";

const frameBytes = 480;
const blockBytes = frameBytes * 2048;

/** MPEG-2 layer III, no CRC, 160 kbit/s, 24 kHz, mono: 480 bytes a frame, 24 ms. */
const frameHeader = Buffer.from([0xff, 0xf3, 0xe4, 0xc4]);
/** Side information of a mono MPEG-2 frame; all zero, the frame plays as silence and the rest of it is filler. */
const sideInformationBytes = 9;

/** Where a stand-in takes its audio from. */
export interface AudioSource {
  /** The bytes from `start` to `end` of an endless answer: views of one block, so usually one piece, at most a few. */
  pieces(start: number, end: number): Uint8Array[];
}

/** The source of a format. mp3 is valid frames of silence with random filler; pcm is noise. */
export function createAudioSource(format: SourceFormat): AudioSource {
  const block = noise(blockBytes);
  if (format === "mp3") {
    for (let at = 0; at < blockBytes; at += frameBytes) {
      block.set(frameHeader, at);
      block.fill(0, at + frameHeader.length, at + frameHeader.length + sideInformationBytes);
    }
  }
  return {
    pieces(start, end) {
      const pieces: Uint8Array[] = [];
      for (let at = start; at < end; ) {
        const from = at % blockBytes;
        const length = Math.min(end - at, blockBytes - from);
        pieces.push(block.subarray(from, from + length));
        at += length;
      }
      return pieces;
    },
  };
}

/** The first `length` bytes that a source gives. */
export function firstBytes(source: AudioSource, length: number): Buffer {
  return Buffer.concat(source.pieces(0, length));
}

/** The header of a WAV whose length is not known when it begins: 16 bits, mono. */
export function endlessWavHeader(sampleRateHz: number): Buffer {
  const header = Buffer.alloc(44);
  header.write("RIFF\xff\xff\xff\xffWAVEfmt ", 0, "latin1");
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data\xff\xff\xff\xff", 36, "latin1");
  return header;
}

/** xorshift32 from a fixed seed; 0xff becomes 0xfe, so that no false mp3 frame starts in it. */
function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length);
  let state = 0x9e3779b9;
  for (let at = 0; at < length; at += 4) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes.writeInt32LE(state, at);
  }
  return bytes.map((byte) => (byte === 0xff ? 0xfe : byte)) as Buffer;
}
