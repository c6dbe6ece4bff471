import type { Log } from "../lib/runtime/log.ts";

/** What was started, to be ended in the opposite order; an end that fails is logged and the others still follow. */
export class Teardown {
  readonly #log: Log;
  readonly #ends: (() => Promise<void>)[] = [];
  #lastRun: Promise<void> = Promise.resolve();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adds the end of something that runs now. */
  add(end: () => Promise<void>): void {
    this.#ends.push(end);
  }

  /**
   * Ends all; what was ended before is not ended again. Waits for a run that is under way, so that nothing is ended
   * before what was started after it.
   */
  run(): Promise<void> {
    this.#lastRun = this.#lastRun.then(() => this.#endAll());
    return this.#lastRun;
  }

  async #endAll(): Promise<void> {
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) {
      await end().catch((thrown: unknown) => this.#log.error({ err: thrown }, "a part could not be ended"));
    }
  }
}
