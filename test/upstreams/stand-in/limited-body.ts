import type { StandInAnswer } from "./stand-in-server.ts";

/** A body that breaks off where it is told to. */
export class LimitedBody {
  readonly #answer: StandInAnswer;
  #left: number;

  constructor(answer: StandInAnswer, cutAfterBytes: number = Number.POSITIVE_INFINITY) {
    this.#answer = answer;
    this.#left = cutAfterBytes;
  }

  /** Writes what is left to be written of it. */
  async write(text: string): Promise<void> {
    if (this.#answer.isClosed) return;
    const bytes = Buffer.from(text).subarray(0, this.#left);
    this.#left -= bytes.length;
    await this.#answer.write(bytes);
    if (this.#left === 0) await this.#answer.cut();
  }

  /** Ends it as whole, unless it was to be cut. */
  async end(): Promise<void> {
    if (this.#left !== Number.POSITIVE_INFINITY && !this.#answer.isClosed) await this.#answer.cut();
    if (!this.#answer.isClosed) this.#answer.end();
  }
}
