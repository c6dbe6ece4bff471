/*
 * Owns how many requests of each name have begun in its window.
 * - A window begins with the first request after the last one has ended.
 * - Windows are kept oldest first and at most `maxWindows` of them: ended ones go as new ones come, and when there is
 *   still no room the oldest goes, whose name then starts anew.
 */
import type { Clock } from "../runtime/clock.ts";
import { rateWindowMs } from "./limiter.ts";

/** How windows are kept. */
export interface RateWindowsOptions {
  readonly clock: Clock;
  /** Defaults to a minute. */
  readonly windowMs?: number;
  /** Windows kept at one time; defaults to 100,000. */
  readonly maxWindows?: number;
}

interface RateWindow {
  readonly endsMs: number;
  begun: number;
}

/** Requests begun, by name and window. */
export class RateWindows {
  readonly #clock: Clock;
  readonly #windowMs: number;
  readonly #maxWindows: number;
  readonly #windows = new Map<string, RateWindow>();

  constructor({ clock, windowMs = rateWindowMs, maxWindows = 100_000 }: RateWindowsOptions) {
    this.#clock = clock;
    this.#windowMs = windowMs;
    this.#maxWindows = maxWindows;
  }

  get size(): number {
    return this.#windows.size;
  }

  /** Milliseconds until one more may begin; 0 when it may now. */
  waitMs(name: string, limit: number): number {
    const window = this.#windows.get(name);
    if (window === undefined || window.begun < limit) return 0;
    return Math.max(0, window.endsMs - this.#clock.monotonicMs());
  }

  add(name: string): void {
    const nowMs = this.#clock.monotonicMs();
    const window = this.#windows.get(name);
    if (window !== undefined && nowMs < window.endsMs) {
      window.begun += 1;
      return;
    }
    this.#open(name, { endsMs: nowMs + this.#windowMs, begun: 1 }, nowMs);
  }

  /** Takes back one that was counted, while its window lasts. */
  takeBack(name: string): void {
    const window = this.#windows.get(name);
    if (window !== undefined && window.begun > 0) window.begun -= 1;
  }

  /** When a name's window ends, monotonic milliseconds; undefined when it has none that lasts. */
  endsMs(name: string): number | undefined {
    const endsMs = this.#windows.get(name)?.endsMs;
    return endsMs !== undefined && this.#clock.monotonicMs() < endsMs ? endsMs : undefined;
  }

  /** What all processes have begun, and until when it counts. */
  learn(name: string, begun: number, leftMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const known = this.#windows.get(name);
    const ours = known !== undefined && nowMs < known.endsMs ? known.begun : 0;
    this.#open(name, { endsMs: nowMs + leftMs, begun: Math.max(begun, ours) }, nowMs);
  }

  #open(name: string, window: RateWindow, nowMs: number): void {
    this.#windows.delete(name);
    for (const [oldest, { endsMs }] of this.#windows) {
      if (nowMs < endsMs && this.#windows.size < this.#maxWindows) break;
      this.#windows.delete(oldest);
    }
    this.#windows.set(name, window);
  }
}
