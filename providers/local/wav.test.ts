import { describe, expect, it } from "vitest";
import { decodeWav } from "./wav.ts";

function chunk(tag: string, body: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.write(tag, 0, "latin1");
  header.writeUInt32LE(body.length, 4);
  return Buffer.concat([header, body, Buffer.alloc(body.length & 1)]);
}

function format({ code = 1, channels = 1, rateHz = 16_000, bits = 16 } = {}): Buffer {
  const body = Buffer.alloc(16);
  body.writeUInt16LE(code, 0);
  body.writeUInt16LE(channels, 2);
  body.writeUInt32LE(rateHz, 4);
  body.writeUInt16LE(bits, 14);
  return chunk("fmt ", body);
}

function wav(...chunks: Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from("WAVE"), ...chunks]);
  return chunk("RIFF", body);
}

const data = chunk("data", Buffer.from([1, 0, 0xff, 0xff, 0, 0x80]));

describe("decodeWav", () => {
  it("reads rate, channels and samples, and skips other chunks", () => {
    const file = wav(chunk("LIST", Buffer.from("odd")), format({ channels: 2, rateHz: 8_000 }), data);
    expect(decodeWav(file)).toEqual({
      sampleRateHz: 8_000,
      channels: 2,
      samples: Int16Array.from([1, -1, -32_768]),
    });
  });

  it.each([
    ["empty", Buffer.alloc(0)],
    ["of another kind", Buffer.from("GIF89a, and then some more bytes")],
    ["without a format", wav(data)],
    ["without samples", wav(format())],
    ["of floats", wav(format({ code: 3, bits: 32 }), data)],
    ["of 8 bits", wav(format({ bits: 8 }), data)],
    ["cut short", wav(format(), data).subarray(0, -1)],
    ["cut short in its format", wav(format(), data).subarray(0, 26)],
  ])("throws for a file %s", (_, file) => {
    expect(() => decodeWav(file)).toThrow(/WAV/);
  });
});
