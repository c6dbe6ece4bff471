import { describe, expect, it } from "vitest";
import { resample16To24 } from "./resample.ts";

const tone = (hz: number, rateHz: number, length: number, amplitude = 10_000) =>
  Int16Array.from({ length }, (_, index) =>
    Math.round(amplitude * Math.sin((2 * Math.PI * hz * index) / rateHz)),
  );

/** Amplitude of one frequency in the middle half of the samples. */
function amplitudeAt(samples: Int16Array, hz: number, rateHz: number): number {
  const middle = samples.subarray(samples.length / 4, (samples.length * 3) / 4);
  let real = 0;
  let imaginary = 0;
  for (const [index, sample] of middle.entries()) {
    const angle = (2 * Math.PI * hz * index) / rateHz;
    real += sample * Math.cos(angle);
    imaginary += sample * Math.sin(angle);
  }
  return (2 * Math.hypot(real, imaginary)) / middle.length;
}

describe("resample16To24", () => {
  it("gives half again as many samples", () => {
    expect([0, 1, 2, 3, 16_000].map((length) => resample16To24(new Int16Array(length)).length)).toEqual([
      0, 2, 3, 5, 24_000,
    ]);
  });

  it("keeps a tone as it is, without delay", () => {
    const output = resample16To24(tone(1_000, 16_000, 16_000));
    const expected = tone(1_000, 24_000, 24_000);
    const errors = output.subarray(200, -200).map((sample, index) => sample - (expected[index + 200] ?? 0));
    expect(Math.max(...errors.map(Math.abs))).toBeLessThanOrEqual(3);
  });

  it.each([500, 3_000, 6_000])("lets %i Hz through and adds no image of it", (hz) => {
    const output = resample16To24(tone(hz, 16_000, 16_000));
    expect(amplitudeAt(output, hz, 24_000) / 10_000).toBeCloseTo(1, 2);
    const image = amplitudeAt(output, 16_000 - hz, 24_000);
    expect(image).toBeLessThan(10_000 * 10 ** (-70 / 20));
  });

  it("keeps a constant, and clips instead of wrapping round", () => {
    const flat = resample16To24(new Int16Array(1_000).fill(1_000)).subarray(200, -200);
    expect(new Set(flat).isSubsetOf(new Set([999, 1_000, 1_001]))).toBe(true);
    const square = Int16Array.from({ length: 1_000 }, (_, index) => (index % 40 < 20 ? 32_767 : -32_768));
    const loud = resample16To24(square);
    for (let index = 300; index < 900; index++) {
      const nearest = square[Math.round((index * 2) / 3)] ?? 0;
      const edge = Math.round((index * 2) / 3) % 20;
      if (edge > 2 && edge < 17) expect(Math.sign(loud[index] ?? 0)).toBe(Math.sign(nearest));
    }
    expect(Math.max(...loud)).toBe(32_767);
  });
});
