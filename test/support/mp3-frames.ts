/** One frame of an MPEG layer III stream, as its header tells it; `samples` are those of one channel. */
export interface Mp3Frame {
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly bitrateKbps: number;
  readonly samples: number;
  /** Length, its header included. */
  readonly bytes: number;
}

const bitratesKbps = {
  mpeg1: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  mpeg2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};

/** Walks an MPEG layer III stream header by header (ISO/IEC 11172-3, 13818-3); throws where one is not where it must be. */
export function mp3Frames(mp3: Buffer): Mp3Frame[] {
  const frames: Mp3Frame[] = [];
  for (let at = 0; at < mp3.length; ) {
    const header = mp3.readUInt32BE(at);
    const version = (header >>> 19) & 3;
    const layer = (header >>> 17) & 3;
    const rateIndex = (header >>> 10) & 3;
    if (header >>> 21 !== 0x7ff || version === 1 || layer !== 1 || rateIndex === 3) {
      throw new Error(`no frame at ${at}`);
    }
    const sampleRateHz = ([44_100, 48_000, 32_000][rateIndex] ?? 0) / ({ 3: 1, 2: 2, 0: 4 }[version] ?? 1);
    const bitrateKbps = bitratesKbps[version === 3 ? "mpeg1" : "mpeg2"][(header >>> 12) & 15] ?? 0;
    const samples = version === 3 ? 1_152 : 576;
    const padding = (header >>> 9) & 1;
    const bytes = Math.floor((samples * bitrateKbps * 125) / sampleRateHz) + padding;
    at += bytes;
    if (at > mp3.length) throw new Error("the last frame is cut short");
    frames.push({ sampleRateHz, channels: ((header >>> 6) & 3) === 3 ? 1 : 2, bitrateKbps, samples, bytes });
  }
  return frames;
}

/** How many samples of one channel the frames of a stream hold. */
export function samplesOf(frames: readonly Mp3Frame[]): number {
  return frames.reduce((total, { samples }) => total + samples, 0);
}
