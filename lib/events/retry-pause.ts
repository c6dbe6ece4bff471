import { setTimeout as delay } from "node:timers/promises";

/** Pauses between the tries of something that fails: each twice as long as the one before, up to a bound. */
export class RetryPause {
  readonly #firstMs: number;
  readonly #longestMs: number;
  #nextMs: number;

  constructor(firstMs: number, longestMs: number) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
    this.#nextMs = firstMs;
  }

  /** Whether there was a pause since the last success. */
  get failing(): boolean {
    return this.#nextMs > this.#firstMs;
  }

  /** How long the next pause is, milliseconds, which counts as taken. */
  next(): number {
    const durationMs = this.#nextMs;
    this.#nextMs = Math.min(durationMs * 2, this.#longestMs);
    return durationMs;
  }

  /** Resolves after the next pause, or as soon as the signal fires. */
  async wait(signal?: AbortSignal): Promise<void> {
    await delay(this.next(), undefined, signal === undefined ? {} : { signal }).catch(() => undefined);
  }

  /** After a success: the next pause is the first again. */
  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
