/** The time limits of one generation and the signal that ends its work. Ends with `end()`, whatever happened. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #idle: NodeJS.Timeout | undefined;
  readonly #total: NodeJS.Timeout;
  #waiting = false;
  #finished = false;
  #timedOut = false;
  #upstreamSlow = false;

  /**
   * Follows `parent`; fires after `timeoutMs` in all, or after `idleTimeoutMs`, where there is one, of waiting for the
   * upstream.
   */
  constructor(parent: AbortSignal, timeoutMs: number, idleTimeoutMs?: number) {
    this.#parent = parent;
    this.#total = setTimeout(() => this.#expire(), timeoutMs);
    if (idleTimeoutMs !== undefined) {
      this.#idle = setTimeout(() => {
        if (this.#waiting) this.#expire();
      }, idleTimeoutMs);
    }
    if (parent.aborted) this.#follow();
    else parent.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether one of the time limits fired, as opposed to the parent's signal. */
  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Whether a time limit fired while output of the upstream was awaited, and not while the caller took its time. */
  get upstreamSlow(): boolean {
    return this.#upstreamSlow;
  }

  /** Awaits output of the upstream under the idle limit. The time between two calls does not count. */
  async waitFor<T>(output: Promise<T>): Promise<T> {
    this.#waiting = true;
    this.#idle?.refresh();
    try {
      return await output;
    } finally {
      this.#waiting = false;
    }
  }

  /** Stops the clocks: the work has ended by itself. */
  finish(): void {
    clearTimeout(this.#idle);
    clearTimeout(this.#total);
    this.#parent.removeEventListener("abort", this.#follow);
    this.#finished = true;
  }

  /** Stops the clocks and, unless the work has finished, ends whatever still follows the signal. */
  end(): void {
    if (this.#finished) return;
    this.finish();
    this.#controller.abort();
  }

  readonly #follow = () => {
    clearTimeout(this.#idle);
    clearTimeout(this.#total);
    this.#controller.abort(this.#parent.reason);
  };

  #expire(): void {
    this.#timedOut = true;
    this.#upstreamSlow = this.#waiting;
    this.#controller.abort(new DOMException("deadline exceeded", "TimeoutError"));
  }
}
