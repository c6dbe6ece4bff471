/*
 * Owns what this process has admitted, by bucket.
 * 1. A window begins with the first admission after the last one has ended; admissions alone count in it.
 * 2. Windows are kept oldest first and at most `maxBuckets` of them: ended ones go as new ones come, and when there is
 *    still no room the oldest goes, whose bucket then starts anew.
 * 3. What is in flight is counted apart from windows and only while there is any, so that it outlives them and is
 *    bounded by the requests that run.
 */
import type { Clock } from "../runtime/clock.ts";
import { allInFlight, type Refusal, type RequestLimits, rateWindowMs, windowUsedUp } from "./limiter.ts";

/** How a process counts. */
export interface LocalCountsOptions {
  readonly clock: Clock;
  /** Defaults to a minute. */
  readonly windowMs?: number;
  /** Windows kept at one time; defaults to 100,000. */
  readonly maxBuckets?: number;
}

interface RateWindow {
  readonly endsMs: number;
  admitted: number;
}

/** Requests of this process: begun in the window of each bucket, and in flight. */
export class LocalCounts {
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #maxBuckets: number;
  readonly #windows = new Map<string, RateWindow>();
  readonly #inFlight = new Map<string, number>();

  constructor({ clock, windowMs = rateWindowMs, maxBuckets = 100_000 }: LocalCountsOptions) {
    this.#clock = clock;
    this.#windowMs = windowMs;
    this.#maxBuckets = maxBuckets;
  }

  /** Entries kept, for tests of their bound. */
  get size(): { windows: number; inFlight: number } {
    return { windows: this.#windows.size, inFlight: this.#inFlight.size };
  }

  /** Why one more request of the bucket is refused; undefined when it is not. */
  refusal(bucket: string, { perMinute, maxInFlight }: RequestLimits): Refusal | undefined {
    const window = this.#windows.get(bucket);
    if (window !== undefined && window.admitted >= perMinute) {
      const leftMs = window.endsMs - this.#clock.monotonicMs();
      if (leftMs > 0) return windowUsedUp(leftMs);
    }
    return (this.#inFlight.get(bucket) ?? 0) >= maxInFlight ? allInFlight : undefined;
  }

  /** Counts a request that begins. */
  add(bucket: string): void {
    this.#inFlight.set(bucket, (this.#inFlight.get(bucket) ?? 0) + 1);
    const nowMs = this.#clock.monotonicMs();
    const window = this.#windows.get(bucket);
    if (window !== undefined && nowMs < window.endsMs) {
      window.admitted += 1;
      return;
    }
    this.#windows.delete(bucket);
    this.#makeRoom(nowMs);
    this.#windows.set(bucket, { endsMs: nowMs + this.#windowMs, admitted: 1 });
  }

  /** Counts one that was added as ended. */
  remove(bucket: string): void {
    const left = (this.#inFlight.get(bucket) ?? 0) - 1;
    if (left > 0) this.#inFlight.set(bucket, left);
    else this.#inFlight.delete(bucket);
  }

  #makeRoom(nowMs: number): void {
    for (const [bucket, { endsMs }] of this.#windows) {
      if (nowMs < endsMs && this.#windows.size < this.#maxBuckets) return;
      this.#windows.delete(bucket);
    }
  }
}
