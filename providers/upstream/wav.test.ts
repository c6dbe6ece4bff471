import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ProviderError } from "../contract.ts";
import { samplesOfWav } from "./wav.ts";

interface Given {
  readonly tag?: number;
  readonly bits?: number;
  readonly channels?: number;
  readonly sampleRateHz?: number;
  readonly stated?: number;
  /** Chunks before the samples. */
  readonly before?: Buffer;
}

function chunk(name: string, content: Buffer, stated = content.length): Buffer {
  const header = Buffer.alloc(8);
  header.write(name, 0, "latin1");
  header.writeUInt32LE(stated, 4);
  return Buffer.concat([header, content, Buffer.alloc(content.length % 2)]);
}

function wav(samples: Buffer, given: Given = {}): Buffer {
  const { tag = 1, bits = 16, channels = 1, sampleRateHz = 24_000, stated = samples.length } = given;
  const format = Buffer.alloc(16);
  format.writeUInt16LE(tag, 0);
  format.writeUInt16LE(channels, 2);
  format.writeUInt32LE(sampleRateHz, 4);
  format.writeUInt16LE(bits, 14);
  const data = chunk("data", Buffer.alloc(0), stated);
  return Buffer.concat([
    Buffer.from("RIFF\xff\xff\xff\xffWAVE", "latin1"),
    chunk("fmt ", format),
    given.before ?? Buffer.alloc(0),
    data,
    samples,
  ]);
}

async function* pieces(bytes: Uint8Array, ...cuts: number[]): AsyncGenerator<Uint8Array, void> {
  const ends = [
    ...cuts.map((cut) => cut % (bytes.length + 1)).sort((one, other) => one - other),
    bytes.length,
  ];
  let start = 0;
  for (const end of ends) {
    if (end > start) yield bytes.subarray(start, end);
    start = Math.max(start, end);
  }
}

const pcm = Buffer.from(Int16Array.from({ length: 500 }, (_, index) => index * 61 - 15_000).buffer);

describe("samples of a WAV", () => {
  test.each<[string, Given]>([
    ["with its length", {}],
    ["of a stream that does not know its length", { stated: 0 }],
    ["of a stream that says the largest length", { stated: 0xffff_ffff }],
    ["with other chunks before", { before: chunk("LIST", Buffer.from("made by somebody")) }],
    ["with two channels", { channels: 2, sampleRateHz: 44_100 }],
  ])("%s are the same however it is cut", async (_, given) => {
    const file = wav(pcm, given);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(file.length), { maxLength: 8 }), async (cuts) => {
        const { audio, channels, sampleRateHz } = await samplesOfWav(pieces(file, ...cuts));
        expect({ channels, sampleRateHz }).toEqual({ channels: 1, sampleRateHz: 24_000, ...pick(given) });
        expect(Buffer.concat(await Array.fromAsync(audio)).equals(pcm)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test.each<[string, Given, (values: readonly number[]) => Buffer]>([
    ["float", { tag: 3, bits: 32 }, (values) => Buffer.from(Float32Array.from(values).buffer)],
    ["32 bits", { bits: 32 }, (values) => Buffer.from(Int32Array.from(values, (v) => v * 2 ** 31).buffer)],
    ["8 bits", { bits: 8 }, (values) => Buffer.from(values.map((value) => 128 + 128 * value))],
    [
      "24 bits",
      { bits: 24 },
      (values) => Buffer.concat(values.map((v) => Buffer.from([0, ...int16(v * 32_768)]))),
    ],
  ])("of %s become 16 bits", async (_, given, encode) => {
    const values = [0, 0.5, -0.5, 0.25, -1];
    const file = wav(encode(values), given);
    const { audio } = await samplesOfWav(
      pieces(file, ...Array.from({ length: file.length }, (__, at) => at)),
    );
    const made = Buffer.concat(await Array.fromAsync(audio));
    expect(values.map((___, index) => made.readInt16LE(2 * index) / 32_768)).toEqual(values);
  });

  test("beyond full scale are cut off, and no number is silence", async () => {
    const file = wav(Buffer.from(Float32Array.of(2, -2, Number.NaN).buffer), { tag: 3, bits: 32 });
    const { audio } = await samplesOfWav(pieces(file));
    const made = Buffer.concat(await Array.fromAsync(audio));
    expect([0, 2, 4].map((at) => made.readInt16LE(at))).toEqual([32_767, -32_768, 0]);
  });

  test("end where the header says, and what follows is no sound", async () => {
    const file = Buffer.concat([wav(pcm), chunk("LIST", Buffer.alloc(100, 1))]);
    const { audio } = await samplesOfWav(pieces(file, 60));
    expect(Buffer.concat(await Array.fromAsync(audio)).length).toBe(pcm.length);
  });

  test("leave their source when they are left", async () => {
    let left = false;
    async function* source() {
      try {
        yield wav(pcm, { stated: 0 });
        for (;;) yield pcm;
      } finally {
        left = true;
      }
    }
    const { audio } = await samplesOfWav(source());
    for await (const _ of audio) break;
    expect(left).toBe(true);
  });

  test.each([
    ["nothing", Buffer.alloc(0)],
    ["JSON", Buffer.from('{"error": "no sound today, sorry"}')],
    ["a header cut short", wav(pcm).subarray(0, 30)],
    ["a-law", wav(pcm, { tag: 6, bits: 8 })],
    ["five channels", wav(pcm, { channels: 5 })],
    [
      "a header without end",
      Buffer.concat([Buffer.from("RIFF....WAVE"), chunk("junk", Buffer.alloc(70_000))]),
    ],
    ["samples before their format", Buffer.concat([Buffer.from("RIFF....WAVE"), chunk("data", pcm)])],
  ])("of %s are refused", async (_, bytes) => {
    await expect(samplesOfWav(pieces(bytes))).rejects.toBeInstanceOf(ProviderError);
  });
});

function pick({ channels, sampleRateHz }: Given): Partial<Given> {
  return { ...(channels !== undefined && { channels }), ...(sampleRateHz !== undefined && { sampleRateHz }) };
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16LE(value);
  return bytes;
}
