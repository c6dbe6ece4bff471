import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { createEncoder } from "wasm-media-encoders";
import { AudioDuration } from "./audio-duration.ts";
import { transcodePcmToMp3 } from "./transcode.ts";

const shape = { sampleRateHz: 24_000, channels: 1 };
const seconds = 3;
let mp3: Buffer;

beforeAll(async () => {
  async function* silence() {
    yield new Uint8Array(seconds * 2 * shape.sampleRateHz);
  }
  mp3 = Buffer.concat(await Array.fromAsync(transcodePcmToMp3({ ...shape, audio: silence() })));
});

function add(duration: AudioDuration, bytes: Uint8Array, cuts: readonly number[]): number {
  let start = 0;
  for (const end of [...cuts.toSorted((one, other) => one - other), bytes.length]) {
    duration.add(bytes.subarray(start, end));
    start = end;
  }
  return duration.milliseconds;
}

describe("the length of audio", () => {
  test("of pcm is its samples", () => {
    const duration = new AudioDuration("pcm", { sampleRateHz: 22_050, channels: 2 });
    duration.add(new Uint8Array(22_050 * 4));
    duration.add(new Uint8Array(22_050 * 2));
    expect(duration.milliseconds).toBe(1500);
  });

  test("of mp3 is its frames', however it is cut", () => {
    // An encoder's delay and last frame add a little.
    const whole = add(new AudioDuration("mp3", shape), mp3, []);
    expect(whole).toBeGreaterThanOrEqual(seconds * 1000);
    expect(whole).toBeLessThan(seconds * 1000 + 150);
    const cuts = fc.array(fc.nat(mp3.length), { maxLength: 20 });
    fc.assert(fc.property(cuts, (at) => add(new AudioDuration("mp3", shape), mp3, at) === whole));
  });

  test("of mp3 does not count its tag, in which there may be anything", () => {
    const tag = Buffer.alloc(10 + 300, mp3.subarray(0, 4));
    tag.set(Buffer.from("ID3\x04\0\0\0\0\x02\x2c", "latin1"));
    const tagged = Buffer.concat([tag, mp3]);
    const whole = add(new AudioDuration("mp3", shape), mp3, []);
    const cuts = fc.array(fc.nat(tagged.length), { maxLength: 20 });
    fc.assert(fc.property(cuts, (at) => add(new AudioDuration("mp3", shape), tagged, at) === whole));
  });

  test("of another rate and stereo is that of its own frames", async () => {
    const encoder = await createEncoder("audio/mpeg", await wasm());
    encoder.configure({ sampleRate: 44_100, channels: 2, bitrate: 128 });
    const samples = new Float32Array(44_100);
    const head = Buffer.from(encoder.encode([samples, samples]));
    const bytes = Buffer.concat([head, encoder.finalize()]);
    const ms = add(new AudioDuration("mp3", shape), bytes, [1, 100]);
    expect(Math.abs(ms - 1000)).toBeLessThan(100);
  });

  test("of what is no mp3 is nothing", () => {
    const noise = Buffer.alloc(100_000, "no audio at all. ");
    expect(add(new AudioDuration("mp3", shape), noise, [10])).toBe(0);
  });
});

async function wasm(): Promise<WebAssembly.Module> {
  const { readFile } = await import("node:fs/promises");
  const path = new URL(import.meta.resolve("wasm-media-encoders/wasm/mp3"));
  return await WebAssembly.compile(await readFile(path));
}
