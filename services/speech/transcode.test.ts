import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProviderError } from "../../providers/contract.ts";
import { mp3Frames } from "../../test/support/mp3-frames.ts";
import { Mp3Encoders, type PcmStream, transcodePcmToMp3 } from "./transcode.ts";

const sampleRatesHz = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];
const encoders = new Mp3Encoders();

/** Interleaved samples of a tone that is higher in the second channel. */
function tone(sampleRateHz: number, channels: number, seconds: number): Buffer {
  const frames = Math.round(sampleRateHz * seconds);
  const pcm = Buffer.alloc(frames * channels * 2);
  for (let frame = 0; frame < frames; frame++) {
    for (let channel = 0; channel < channels; channel++) {
      const angle = (2 * Math.PI * 330 * (channel + 1) * frame) / sampleRateHz;
      pcm.writeInt16LE(Math.round(12_000 * Math.sin(angle)), (frame * channels + channel) * 2);
    }
  }
  return pcm;
}

/** Cuts bytes into chunks of these lengths, over and over. */
async function* inChunks(bytes: Uint8Array, lengths: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let start = 0, turn = 0; start < bytes.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    yield bytes.subarray(start, start + length);
    start += length;
  }
}

const mono = { sampleRateHz: 24_000, channels: 1, encoders };

function transcode(pcm: Uint8Array, options: Partial<PcmStream> = {}, lengths = [4_096]) {
  return transcodePcmToMp3({ ...mono, ...options, audio: inChunks(pcm, lengths) });
}

async function encode(pcm: Uint8Array, options: Partial<PcmStream> = {}, lengths = [4_096]): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(transcode(pcm, options, lengths)));
}

describe("the MP3", () => {
  const forms = sampleRatesHz.flatMap((sampleRateHz) =>
    [1, 2].map((channels) => ({ sampleRateHz, channels })),
  );

  it.each(forms)("is whole frames of the source's rate, channels and duration: %j", async (form) => {
    const frames = mp3Frames(await encode(tone(form.sampleRateHz, form.channels, 1.5), form));
    const bitrateKbps = form.sampleRateHz < 16_000 ? 64 : 64 * form.channels;
    for (const frame of frames) expect(frame).toMatchObject({ ...form, bitrateKbps });
    const samples = frames.reduce((total, frame) => total + frame.samples, 0);
    const wanted = form.sampleRateHz * 1.5;
    expect(samples).toBeGreaterThanOrEqual(wanted);
    // The encoder looks ahead and fills up its last frame.
    expect(samples).toBeLessThan(wanted + 4 * 1_152);
  });

  it("has the bit rate asked for", async () => {
    const frames = mp3Frames(await encode(tone(24_000, 1, 1), { bitrateKbps: 96 }));
    expect(new Set(frames.map(({ bitrateKbps }) => bitrateKbps))).toEqual(new Set([96]));
  });

  it("keeps its sample rate at a low bit rate", async () => {
    const form = { sampleRateHz: 44_100, channels: 2 };
    const frames = mp3Frames(await encode(tone(44_100, 2, 0.5), { ...form, bitrateKbps: 32 }));
    for (const frame of frames) expect(frame).toMatchObject({ ...form, bitrateKbps: 32 });
  });

  it.each([1, 2])("does not depend on how the source is cut: %i channels", async (channels) => {
    const pcm = tone(24_000, channels, 0.7);
    const whole = await encode(pcm, { channels }, [pcm.length]);
    const lengths = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(lengths, async (each) => {
        expect(Buffer.compare(await encode(pcm, { channels }, each), whole)).toBe(0);
      }),
      { numRuns: 15 },
    );
  });

  it("drops bytes at the end that are no whole sample", async () => {
    const pcm = tone(24_000, 2, 0.3);
    const longer = Buffer.concat([pcm, Buffer.from([1, 2, 3])]);
    const stereo = { channels: 2 };
    expect((await encode(longer, stereo)).equals(await encode(pcm, stereo))).toBe(true);
  });

  it("is the same from a used encoder as from a new one, whatever became of its last stream", async () => {
    const pcm = tone(24_000, 1, 0.5);
    const fresh = await encode(pcm, { encoders: new Mp3Encoders() });
    const used = new Mp3Encoders();
    await encode(tone(44_100, 2, 0.4), { sampleRateHz: 44_100, channels: 2, encoders: used });
    for await (const _ of transcode(pcm, { encoders: used })) break;
    expect(used.idle).toBe(1);
    expect((await encode(pcm, { encoders: used })).equals(fresh)).toBe(true);
    expect(used.idle).toBe(1);
  });

  it("of no audio is no error", async () => {
    expect(mp3Frames(await encode(Buffer.alloc(0))).length).toBeLessThan(4);
  });

  it.each([
    { sampleRateHz: 96_000 },
    { sampleRateHz: 23_000 },
    { sampleRateHz: Number.NaN },
    { channels: 0 },
    { channels: 3 },
  ])("is refused at once for %j", (form) => {
    expect(() => transcode(Buffer.alloc(0), form)).toThrow(ProviderError);
  });
});

describe("streaming", () => {
  it("gives bytes while the source goes on", async () => {
    const pcm = tone(24_000, 1, 2);
    let taken = 0;
    const source = async function* () {
      for await (const chunk of inChunks(pcm, [480])) {
        taken += chunk.length;
        yield chunk;
      }
    };
    let takenAtFirst: number | undefined;
    for await (const _ of transcodePcmToMp3({ ...mono, audio: source() })) {
      takenAtFirst ??= taken;
    }
    expect(takenAtFirst).toBeLessThan(pcm.length / 8);
    expect(taken).toBe(pcm.length);
  });

  it("lets others have their turn within one large chunk", async () => {
    const pcm = tone(24_000, 1, 5);
    let turns = 0;
    let counting = true;
    const count = () => {
      turns++;
      if (counting) setImmediate(count);
    };
    setImmediate(count);
    await encode(pcm, {}, [pcm.length]);
    counting = false;
    expect(turns).toBeGreaterThanOrEqual(19);
  });

  it("keeps the bytes that it gave out", async () => {
    const kept = await Array.fromAsync(transcode(tone(24_000, 1, 1)));
    const copies: Buffer[] = [];
    for await (const bytes of transcode(tone(24_000, 1, 1))) copies.push(Buffer.from(bytes));
    expect(Buffer.concat(kept).equals(Buffer.concat(copies))).toBe(true);
  });

  it("throws what the source throws, without an end of the MP3", async () => {
    const pcm = tone(24_000, 1, 1);
    const failure = new ProviderError("network", "broke off");
    const source = async function* () {
      yield pcm;
      throw failure;
    };
    const got: Uint8Array[] = [];
    const read = async () => {
      for await (const bytes of transcodePcmToMp3({ ...mono, audio: source() })) got.push(bytes);
    };
    await expect(read()).rejects.toBe(failure);
    const whole = await encode(pcm);
    const part = Buffer.concat(got);
    expect(part.length).toBeGreaterThan(0);
    expect(part.length).toBeLessThan(whole.length);
    expect(whole.subarray(0, part.length).equals(part)).toBe(true);
  });

  it.each([0, 1])("returns its source when left after %i chunks", async (chunks) => {
    let returned = 0;
    const pcm = tone(24_000, 1, 1);
    const source: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false, value: pcm }),
        return: async () => {
          returned++;
          return { done: true, value: undefined };
        },
      }),
    };
    const mp3 = transcodePcmToMp3({ ...mono, audio: source })[Symbol.asyncIterator]();
    for (let read = 0; read < chunks; read++) expect((await mp3.next()).done).toBe(false);
    await mp3.return?.();
    expect(returned).toBeGreaterThanOrEqual(1);
    expect((await mp3.next()).done).toBe(true);
  });

  it.each(["take", "encode"])(
    "returns its source when %s fails, and keeps no failed encoder",
    async (failing) => {
      const failure = new Error("no memory");
      const encoders = new Mp3Encoders();
      const encoder = await encoders.take();
      encoder.encode = () => {
        throw failure;
      };
      encoders.take = () => (failing === "take" ? Promise.reject(failure) : Promise.resolve(encoder));
      let returned = false;
      const source = inChunks(tone(24_000, 1, 1), [4_096]);
      const audio = {
        [Symbol.asyncIterator]: () => ({
          next: () => source.next(),
          return: () => {
            returned = true;
            return source.return(undefined);
          },
        }),
      };
      const mp3 = transcodePcmToMp3({ ...mono, audio, encoders })[Symbol.asyncIterator]();
      await expect(mp3.next()).rejects.toBe(failure);
      expect({ returned, idle: encoders.idle }).toEqual({ returned: true, idle: 0 });
    },
  );

  it("returns a source that it waits for", async () => {
    let release: (result: IteratorResult<Uint8Array>) => void = () => undefined;
    const source: AsyncIterable<Uint8Array> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise((resolve) => (release = resolve)),
        return: async () => {
          release({ done: true, value: undefined });
          return { done: true, value: undefined };
        },
      }),
    };
    const mp3 = transcodePcmToMp3({ ...mono, audio: source })[Symbol.asyncIterator]();
    const next = mp3.next();
    await new Promise(setImmediate);
    await mp3.return?.();
    await next;
  });
});
