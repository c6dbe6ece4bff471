import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mp3Frames } from "../../test/support/mp3-frames.ts";
import { Mp3Encoders, transcodePcmToMp3 } from "./transcode.ts";
import { UsableAudio } from "./usable-audio.ts";

/** How many bytes must have been added before the audio is usable; undefined: all of them do not make it so. */
function usableAfter(
  format: "mp3" | "pcm",
  bytes: Uint8Array,
  cuts: readonly number[] = [],
): number | undefined {
  const audio = new UsableAudio(format);
  const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  );
  let start = 0;
  for (const end of ends) {
    audio.add(bytes.subarray(start, end));
    if (audio.usable) return end;
    start = end;
  }
  return undefined;
}

const everyByte = (length: number) => Array.from({ length }, (_, index) => index);

async function speech(): Promise<Buffer> {
  async function* audio() {
    yield Buffer.alloc(48_000, 1);
  }
  const encoded = transcodePcmToMp3({
    sampleRateHz: 24_000,
    channels: 1,
    audio: audio(),
    encoders: new Mp3Encoders(),
  });
  return Buffer.concat(await Array.fromAsync(encoded));
}

test("one sample of pcm is usable, half of one is not", () => {
  expect(usableAfter("pcm", new Uint8Array(1))).toBeUndefined();
  expect(usableAfter("pcm", new Uint8Array(10), everyByte(10))).toBe(2);
});

describe("mp3", () => {
  test("is usable with its first whole frame, however it is cut", async () => {
    const bytes = await speech();
    const length = mp3Frames(bytes)[0]?.bytes ?? 0;
    expect(length).toBeGreaterThan(20);
    expect(usableAfter("mp3", bytes, everyByte(bytes.length))).toBe(length);
    fc.assert(
      fc.property(fc.array(fc.nat(bytes.length), { maxLength: 9 }), (cuts) => {
        const after = usableAfter("mp3", bytes, cuts) ?? 0;
        return after >= length && !cuts.some((cut) => cut >= length && cut < after);
      }),
    );
  });

  test("is usable behind a tag, which is passed over however it is cut", async () => {
    const bytes = await speech();
    const length = mp3Frames(bytes)[0]?.bytes ?? 0;
    const tag = Buffer.concat([
      Buffer.from("ID3\x04\x00\x00\x00\x00\x02\x01", "latin1"),
      Buffer.alloc(257, 0xff),
    ]);
    const tagged = Buffer.concat([tag, bytes]);
    for (const cuts of [[], everyByte(tagged.length), [5, 100], [266], [267], [268]]) {
      const after = usableAfter("mp3", tagged, [...cuts, tag.length + length, tag.length + length - 1]);
      expect(after, cuts.join()).toBe(tag.length + length);
    }
  });

  test("is not usable without a frame", () => {
    expect(usableAfter("mp3", Buffer.from("no audio at all"))).toBeUndefined();
    expect(usableAfter("mp3", Buffer.alloc(5000))).toBeUndefined();
    expect(usableAfter("mp3", Buffer.from("ID3\x04"))).toBeUndefined();
    expect(usableAfter("mp3", new Uint8Array())).toBeUndefined();
  });

  test.for([
    ["MPEG-1, 128 kbit/s, 44.1 kHz", [0xff, 0xfb, 0x90, 0x00], 417],
    ["MPEG-1, 128 kbit/s, 44.1 kHz, padded", [0xff, 0xfb, 0x92, 0x00], 418],
    ["MPEG-2, 64 kbit/s, 24 kHz", [0xff, 0xf3, 0x84, 0x00], 192],
    ["MPEG-2.5, 8 kbit/s, 8 kHz", [0xff, 0xe3, 0x18, 0x00], 72],
  ] as const)("knows the length of a frame of %s", ([, header, length]) => {
    const bytes = Buffer.concat([Buffer.from(header), Buffer.alloc(2000)]);
    expect(usableAfter("mp3", bytes, everyByte(bytes.length))).toBe(length);
  });
});
