import type { Clock } from "../../lib/runtime/clock.ts";

/** A clock that stands until a test moves it. */
export class ManualClock implements Clock {
  #nowMs: number;

  constructor(nowMs: number = Date.UTC(2030, 0, 1)) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  /** Moves both of its times forward. */
  advance(ms: number): void {
    this.#nowMs += ms;
  }
}
