import type { Log } from "../runtime/log.ts";

/** What was started, to be ended in the opposite order; an end that fails is logged and the others still follow. */
export class Teardown {
  readonly #log: Log;
  readonly #ends: (() => Promise<unknown>)[] = [];
  #lastRun: Promise<boolean> = Promise.resolve(true);

  constructor(log: Log) {
    this.#log = log;
  }

  /** Adds the end of something that runs now. */
  add(end: () => Promise<unknown>): void {
    this.#ends.push(end);
  }

  /**
   * Ends all; what was ended before is not ended again. Waits for a run that is under way, so that nothing is ended
   * before what was started after it. Resolves with whether all could be ended; never rejects.
   */
  run(): Promise<boolean> {
    this.#lastRun = this.#lastRun.then((before) => this.#endAll(before));
    return this.#lastRun;
  }

  async #endAll(before: boolean): Promise<boolean> {
    let isWell = before;
    for (let end = this.#ends.pop(); end !== undefined; end = this.#ends.pop()) {
      try {
        await end();
      } catch (thrown) {
        isWell = false;
        this.#log.error({ err: thrown }, "a part could not be ended");
      }
    }
    return isWell;
  }
}
