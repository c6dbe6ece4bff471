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

const kilobits = {
  3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  2: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};

/** The end of the first whole frame, found by looking at every position in turn; undefined without one. */
function wholeFrameAt(bytes: Buffer): number | undefined {
  for (let at = 0; at + 4 <= bytes.length; at++) {
    if (bytes.toString("latin1", at, at + 3) === "ID3") {
      if (at + 10 > bytes.length) return undefined;
      at += 9 + bytes.subarray(at + 6, at + 10).reduce((sum, byte) => sum * 128 + (byte & 127), 0);
      continue;
    }
    const header = bytes.readUInt32BE(at);
    const [version, layer] = [(header >>> 19) & 3, (header >>> 17) & 3];
    const rate = kilobits[version === 3 ? 3 : 2][(header >>> 12) & 15];
    const hertz = [44_100, 48_000, 32_000][(header >>> 10) & 3];
    if (header >>> 21 !== 0x7ff || version === 1 || layer !== 1 || rate === undefined || hertz === undefined)
      continue;
    const samplesOfByte = version === 3 ? 144_000 : 72_000;
    const divided = hertz / (version === 3 ? 1 : version === 2 ? 2 : 4);
    const length = rate === 0 ? 1441 : Math.floor((samplesOfByte * rate) / divided) + ((header >>> 9) & 1);
    return at + length <= bytes.length ? at + length : undefined;
  }
  return undefined;
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

  test("is found where the search before this one found it, in whatever mix and however cut", () => {
    const frame = Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0]), Buffer.alloc(413, 0x55)]);
    const tag = (length: number) =>
      Buffer.concat([
        Buffer.from("ID3\x04\0\0\0\0", "latin1"),
        Buffer.from([length >> 7, length & 127]),
        Buffer.alloc(length, 0xff),
      ]);
    const part = fc.oneof(
      fc
        .constantFrom("ID3", "ID", "\xff", "\xff\xfb", "\xff\xe0\0\0", "\xff\xfb\x02\0", "\xff\xff\xff")
        .map((text) => Buffer.from(text, "latin1")),
      fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes)),
      fc.nat(300).map(tag),
      fc.constant(frame),
    );
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 12 }),
        fc.array(fc.nat(5000), { maxLength: 9 }),
        (parts, cuts) => {
          const bytes = Buffer.concat(parts);
          const whole = wholeFrameAt(bytes);
          const found = usableAfter("mp3", bytes, [
            ...cuts,
            ...everyByte(Math.min(bytes.length, 40)),
            whole ?? 0,
          ]);
          expect(found).toBe(whole);
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("is given up after a few frames' length of anything else, tags not counted", async () => {
    const bytes = await speech();
    const tag = Buffer.concat([
      Buffer.from("ID3\x04\0\0\0\x7f\x7f\x7f", "latin1"),
      Buffer.alloc(0x1f_ffff, 0xff),
    ]);
    expect(usableAfter("mp3", Buffer.concat([tag, tag, bytes]))).toBeDefined();
    const garbage = (length: number) => Buffer.alloc(length, 0xff);
    for (const cuts of [[], [20_000], [23_055, 23_056, 23_057]]) {
      expect(usableAfter("mp3", Buffer.concat([tag, garbage(20_000), bytes]), cuts)).toBeDefined();
      expect(usableAfter("mp3", Buffer.concat([tag, garbage(30_000), bytes]), cuts)).toBeUndefined();
    }
    expect(
      usableAfter("mp3", Buffer.concat([tag, garbage(20_000), tag, garbage(10_000), bytes])),
    ).toBeUndefined();
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
