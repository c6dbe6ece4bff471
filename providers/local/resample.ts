/** The filter works at the lowest common multiple of the two rates: 16 kHz × 3 = 48 kHz = 24 kHz × 2. */
const up = 3;
const down = 2;
const filterRateHz = 48_000;
/** Half-way down at this frequency; with the length below, 80 dB down at the 8 kHz where images of the input begin. */
const cutoffHz = 7_400;
const halfLength = 96;
const kaiserBeta = 7.9;
/** Input samples that the filter reaches to either side. */
const reach = halfLength / up;

/** One row of taps for each of the three positions that an output sample can have between two input samples. */
const phases: readonly Float64Array[] = Array.from({ length: up }, (_, phase) =>
  Float64Array.from({ length: 2 * reach + 1 }, (_, tap) => lowPass(phase + (reach - tap) * up)),
);

/** A windowed sinc, gain 3 to make up for the zeros between input samples; 0 outside its length. */
function lowPass(offset: number): number {
  if (Math.abs(offset) > halfLength) return 0;
  const angle = (2 * Math.PI * cutoffHz) / filterRateHz;
  const sinc = offset === 0 ? angle / Math.PI : Math.sin(angle * offset) / (Math.PI * offset);
  const window = bessel(kaiserBeta * Math.sqrt(1 - (offset / halfLength) ** 2)) / bessel(kaiserBeta);
  return up * sinc * window;
}

/** Modified Bessel function of the first kind, order 0, by its power series. */
function bessel(x: number): number {
  let sum = 1;
  let term = 1;
  for (let k = 1; term > sum * 1e-15; k++) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

/**
 * Mono samples at 16 kHz to mono samples at 24 kHz, half again as many, without delay: sample 3 of the answer stands at
 * the time of sample 2 of the input. Silence is assumed before and after; what goes over the range is clipped.
 */
export function resample16To24(samples: Int16Array): Int16Array<ArrayBuffer> {
  const padded = new Float64Array(samples.length + 2 * reach);
  padded.set(samples, reach);
  const output = new Int16Array(Math.ceil((samples.length * up) / down));
  for (let index = 0; index < output.length; index++) {
    const position = index * down;
    const taps = phases[position % up] as Float64Array;
    // In `padded`, the input sample at or before this position is `reach` further on.
    const first = Math.floor(position / up);
    let sum = 0;
    for (let tap = 0; tap < taps.length; tap++)
      sum += (taps[tap] as number) * (padded[first + tap] as number);
    output[index] = Math.max(-32_768, Math.min(32_767, Math.round(sum)));
  }
  return output;
}
