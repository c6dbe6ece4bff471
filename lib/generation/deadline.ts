/**
 * The time limits of one generation and the signal that ends its work. Ends with `end()`, whatever happened.
 *
 * 1. A caller who leaves ends the work, unless it is to outlast him; a time limit ends it always.
 * 2. Work outlasts its caller while an upstream has all of a request and what comes of it isn't known.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #caller: AbortSignal;
  readonly #idle: NodeJS.Timeout | undefined;
  readonly #total: NodeJS.Timeout;
  #waiting = false;
  #finished = false;
  #timedOut = false;
  #upstreamSlow = false;
  #outlasting = false;
  #known = false;
  #endedByCaller = false;

  /**
   * Follows `caller`, which is aborted when the caller leaves; fires after `timeoutMs` in all, or after `idleTimeoutMs`,
   * where there is one, of waiting for the upstream.
   */
  constructor(caller: AbortSignal, timeoutMs: number, idleTimeoutMs?: number) {
    this.#caller = caller;
    this.#total = setTimeout(() => this.#expire(), timeoutMs);
    if (idleTimeoutMs !== undefined) {
      this.#idle = setTimeout(() => {
        if (this.#waiting) this.#expire();
      }, idleTimeoutMs);
    }
    if (caller.aborted) this.#follow();
    else caller.addEventListener("abort", this.#onLeave, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether one of the time limits fired, as opposed to the caller's leaving. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Whether a time limit fired while output of the upstream was awaited, and not while the caller took its time. */
  get upstreamSlow(): boolean {
    return this.#upstreamSlow;
  }

  /** Whether the work was ended because its caller had left. */
  get endedByCaller(): boolean {
    return this.#endedByCaller;
  }

  /** Whether that took nothing away: what comes of the work was known by then. */
  get endedWellByCaller(): boolean {
    return this.#endedByCaller && this.#known;
  }

  /** From here on the caller may leave and the work goes on. */
  outlastCaller(): void {
    this.#outlasting = true;
  }

  /** From here on a caller who leaves, or has left, ends the work. */
  followCaller(): void {
    this.#outlasting = false;
    if (this.#caller.aborted) this.#follow();
  }

  /** What comes of the work is known: all that is still to come is for the caller alone. */
  outcomeKnown(): void {
    if (this.#known) return;
    this.#known = true; // 2.
    this.followCaller();
  }

  /** Awaits output of the upstream under the idle limit. The time between two calls does not count. */
  waitFor<T>(output: Promise<T>): Promise<T> {
    this.#waiting = true;
    this.#idle?.refresh();
    output.then(this.#hasOutput, this.#hasOutput);
    return output;
  }

  /** Stops the clocks: the work has ended by itself. */
  finish(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#total);
    this.#caller.removeEventListener("abort", this.#onLeave);
    this.#finished = true;
  }

  /** Stops the clocks and, unless the work has finished, ends whatever still follows the signal. */
  end(): void {
    if (this.#finished) return;
    this.finish();
    this.#controller.abort();
  }

  readonly #hasOutput = () => {
    this.#waiting = false;
  };

  readonly #onLeave = () => {
    if (!this.#outlasting) this.#follow(); // 1.
  };

  #follow(): void {
    if (this.#finished || this.signal.aborted) return;
    clearTimeout(this.#idle);
    clearTimeout(this.#total);
    this.#endedByCaller = true;
    this.#controller.abort(this.#caller.reason);
  }

  #expire(): void {
    this.#timedOut = true;
    this.#upstreamSlow = this.#waiting;
    this.#controller.abort(new DOMException("deadline exceeded", "TimeoutError"));
  }
}
