import type { Clock } from "../../lib/runtime/clock.ts";

/** Something that is to run, as `setTimeout` gives it. */
interface Timer {
  atMs: number;
  readonly run: () => void;
  /** Puts it off by its whole time again. */
  refresh(): Timer;
}

/**
 * A time that jumps from one timer to the next. While it is installed it is what `Date.now` and `setTimeout` go by, so code
 * that knows nothing of it lives in it as well; work between two timers takes no time.
 */
export class SimulatedTime implements Clock {
  readonly #due = new Set<Timer>();
  #nowMs: number;

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  /** Runs something later. */
  after(ms: number, run: () => void): Timer {
    const laterMs = () => this.#nowMs + Math.max(ms, 0);
    const timer: Timer = {
      atMs: laterMs(),
      run,
      refresh: () => Object.assign(timer, { atMs: laterMs() }),
    };
    this.#due.add(timer);
    return timer;
  }

  /** Resolves later, or at once when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        this.#due.delete(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = this.after(ms, end);
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  }

  /** Runs what is due, timer by timer, until none is left; after each, everything that follows from it. */
  async run(): Promise<void> {
    for (let next = this.#first(); next !== undefined; next = this.#first()) {
      this.#due.delete(next);
      this.#nowMs = next.atMs;
      next.run();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Puts it in the place of the machine's time until it is disposed of. */
  install(): Disposable {
    const { setTimeout, clearTimeout } = globalThis;
    const { now } = Date;
    const after = (run: () => void, ms = 0) => this.after(ms, run);
    const clear = (timer: Timer | undefined) => timer !== undefined && this.#due.delete(timer);
    Object.assign(globalThis, { setTimeout: after, clearTimeout: clear });
    Date.now = () => this.#nowMs;
    return {
      [Symbol.dispose]() {
        Object.assign(globalThis, { setTimeout, clearTimeout });
        Date.now = now;
      },
    };
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#due) if (first === undefined || timer.atMs < first.atMs) first = timer;
    return first;
  }
}
