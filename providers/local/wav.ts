/** Samples taken out of a WAV file. */
export interface WavAudio {
  readonly sampleRateHz: number;
  readonly channels: number;
  readonly samples: Int16Array;
}

const riffHeaderBytes = 12;
const chunkHeaderBytes = 8;
const formatPcm = 1;

/** Reads a RIFF WAVE file of 16-bit PCM samples. Throws when it is anything else or cut short. */
export function decodeWav(file: Uint8Array): WavAudio {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < riffHeaderBytes || tagAt(file, 0) !== "RIFF" || tagAt(file, 8) !== "WAVE")
    throw new Error("not a WAV file");
  let format: { sampleRateHz: number; channels: number } | undefined;
  for (let at = riffHeaderBytes; at + chunkHeaderBytes <= file.length; ) {
    const start = at + chunkHeaderBytes;
    const length = view.getUint32(at + 4, true);
    if (start + length > file.length) throw new Error("WAV file is cut short");
    const tag = tagAt(file, at);
    if (tag === "fmt ") {
      if (view.getUint16(start, true) !== formatPcm || view.getUint16(start + 14, true) !== 16)
        throw new Error("WAV file is not 16-bit PCM");
      format = { channels: view.getUint16(start + 2, true), sampleRateHz: view.getUint32(start + 4, true) };
    }
    if (tag === "data" && format !== undefined)
      return { ...format, samples: samplesAt(view, start, length >> 1) };
    // Chunks begin at even offsets.
    at = start + length + (length & 1);
  }
  throw new Error("WAV file has no samples");
}

function tagAt(file: Uint8Array, at: number): string {
  return String.fromCharCode(...file.subarray(at, at + 4));
}

function samplesAt(view: DataView, start: number, count: number): Int16Array {
  const samples = new Int16Array(count);
  for (let index = 0; index < count; index++) samples[index] = view.getInt16(start + index * 2, true);
  return samples;
}
