import { createHash } from "node:crypto";
import { createNoise2D, type NoiseFunction2D } from "simplex-noise";

/** A stream of random numbers that its seed alone decides: sfc32 started from a SHA-256. */
export class Random {
  readonly #seed: string;
  readonly #state: Int32Array;

  constructor(seed: string) {
    this.#seed = seed;
    const digest = createHash("sha256").update(seed).digest();
    this.#state = Int32Array.from([0, 4, 8, 12], (at) => digest.readInt32LE(at));
  }

  /** A stream of its own that does not depend on how much of this one was used. */
  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  /** From 0 to below 1. */
  next(): number {
    const [a = 0, b = 0, c = 0, d = 0] = this.#state;
    const sum = (((a + b) | 0) + d) | 0;
    this.#state.set([b ^ (b >>> 9), (c + (c << 3)) | 0, (((c << 21) | (c >>> 11)) + sum) | 0, (d + 1) | 0]);
    return (sum >>> 0) / 4_294_967_296;
  }

  /** From `low` to below `high`. */
  range(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number, both ends included. */
  int(low: number, high: number): number {
    return Math.floor(this.range(low, high + 1));
  }

  /** True with this probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of a list that is not empty. */
  pick<T>(list: readonly [T, ...T[]] | readonly T[]): T {
    const chosen = list[Math.floor(this.next() * list.length)];
    if (chosen === undefined) throw new RangeError("nothing to pick from");
    return chosen;
  }

  /** Simplex noise from -1 to 1. */
  noise(): NoiseFunction2D {
    return createNoise2D(() => this.next());
  }
}
