/** What 16-bit samples need to be told, to be heard. */
export interface SampleForm {
  readonly rateHz: number;
  readonly channels: number;
}

const headerBytes = 44;

/** Samples (signed 16-bit little-endian) as a WAV file, which every player opens. */
export function wavOf(samples: readonly Uint8Array<ArrayBuffer>[], { rateHz, channels }: SampleForm): Blob {
  const bytes = samples.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const header = new DataView(new ArrayBuffer(headerBytes));
  const word = (at: number, text: string) => {
    for (const [index, character] of [...text].entries())
      header.setUint8(at + index, character.charCodeAt(0));
  };
  word(0, "RIFF");
  header.setUint32(4, headerBytes - 8 + bytes, true);
  word(8, "WAVEfmt ");
  header.setUint32(16, 16, true);
  header.setUint16(20, 1, true);
  header.setUint16(22, channels, true);
  header.setUint32(24, rateHz, true);
  header.setUint32(28, rateHz * channels * 2, true);
  header.setUint16(32, channels * 2, true);
  header.setUint16(34, 16, true);
  word(36, "data");
  header.setUint32(40, bytes, true);
  return new Blob([header, ...samples], { type: "audio/wav" });
}
