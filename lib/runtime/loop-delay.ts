import { createHistogram } from "node:perf_hooks";
import { type Clock, systemClock } from "./clock.ts";

/** How often the event loop is looked at while work runs, milliseconds. */
const lookEveryMs = 50;
/** A delay lasts when so many looks in a row were late. */
const lastingLooks = 5;

/** Delays of the event loop, nanoseconds, and 0 where there are none. */
export interface DelayStats {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * How late the event loop comes to its work, seen while work runs and only then: a process with nothing to do is not
 * woken for it.
 */
export class LoopDelay {
  readonly #clock: Clock;
  readonly #delays = createHistogram();
  readonly #lastMs: number[] = [];
  #running = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Work begins, which `end` ends. */
  begin(): void {
    this.#running += 1;
    if (this.#running === 1) this.#look();
  }

  end(): void {
    this.#running -= 1;
    if (this.#running > 0) return;
    clearTimeout(this.#timer);
    this.#lastMs.length = 0;
  }

  /** A request runs until its response is closed. */
  during(response: Pick<NodeJS.EventEmitter, "once">): void {
    this.begin();
    response.once("close", () => this.end());
  }

  /** The delay below which none of the last looks was, milliseconds; 0 until there were some. */
  get lastingMs(): number {
    return this.#lastMs.length < lastingLooks ? 0 : Math.min(...this.#lastMs);
  }

  /** The delays seen since the last call, which begin anew with this one. */
  takeStats(): DelayStats {
    const delays = this.#delays;
    const empty = delays.count === 0;
    const stats = {
      p50: empty ? 0 : delays.percentile(50),
      p99: empty ? 0 : delays.percentile(99),
      max: empty ? 0 : delays.max,
    };
    delays.reset();
    return stats;
  }

  #look(): void {
    const dueMs = this.#clock.monotonicMs() + lookEveryMs;
    this.#timer = setTimeout(() => {
      const lateMs = Math.max(0, this.#clock.monotonicMs() - dueMs);
      // A histogram begins at 1.
      this.#delays.record(Math.max(1, Math.round(lateMs * 1e6)));
      this.#lastMs.push(lateMs);
      if (this.#lastMs.length > lastingLooks) this.#lastMs.shift();
      this.#look();
    }, lookEveryMs).unref();
  }
}
