/**
 * The circuit breaker of one endpoint: cockatiel switches, this file counts and decides who may try.
 *
 * 1. Closed: everybody may. `failuresToOpen` failures in a row open it, where a first output starts the count anew; so do
 *    as many answers in a row that broke off, where only a whole answer does. What breaks off has had its first output.
 * 2. Open: nobody may for `openMs`. Then one attempt at a time may, as a trial: its success closes the breaker, its
 *    failure opens it for another `openMs`, and a trial that was given up says nothing and frees its place.
 * 3. Nothing ever waits here. Time is the machine's wall clock, because cockatiel reads that.
 */
import { type CircuitBreakerPolicy, CircuitState, circuitBreaker, handleAll, type IBreaker } from "cockatiel";

/** When a breaker opens, and for how long. */
export interface BreakerOptions {
  readonly failuresToOpen: number;
  readonly openMs: number;
}

/** Limits that fit providers of media: a handful of failures, then a short rest. */
export const defaultBreakerOptions: BreakerOptions = { failuresToOpen: 5, openMs: 15_000 };

/** A way in, or how long to stay out. */
export type BreakerAdmission =
  | { readonly admitted: true; readonly pass: BreakerPass }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** What one admitted attempt reports to its breaker: one of the three, once; later reports are ignored. */
export interface BreakerPass {
  /** The first output is there. */
  succeeded(): Promise<void>;
  failed(): Promise<void>;
  /** The attempt ended without saying anything about the endpoint. */
  givenUp(): void;
}

/** See the invariants at the top of the file. */
export class Breaker {
  readonly #policy: CircuitBreakerPolicy;
  readonly #openMs: number;
  readonly #inARow: InARow;
  #openUntilMs = -Infinity;
  #trialRuns = false;

  constructor({ failuresToOpen, openMs }: BreakerOptions = defaultBreakerOptions) {
    this.#openMs = openMs;
    this.#inARow = new InARow(failuresToOpen);
    this.#policy = circuitBreaker(handleAll, {
      breaker: this.#inARow,
      halfOpenAfter: openMs,
    });
    this.#policy.onBreak(() => {
      this.#openUntilMs = Date.now() + this.#openMs; // 3.
    });
  }

  /** Milliseconds until an attempt may be let in; 0 when it may be now. */
  get retryAfterMs(): number {
    if (this.#policy.state !== CircuitState.Open) return 0;
    const leftMs = Math.max(this.#openUntilMs - Date.now(), 0);
    return this.#trialRuns ? Math.max(leftMs, trialRetryMs) : leftMs; // 2.
  }

  /** Whether it has opened in the last `milliseconds`. */
  openedWithin(milliseconds: number): boolean {
    return Date.now() - (this.#openUntilMs - this.#openMs) < milliseconds;
  }

  /** Asks for a way in. An admitted attempt must say how it ended, or the breaker waits for it for ever. */
  admit(): BreakerAdmission {
    const { retryAfterMs } = this;
    if (retryAfterMs > 0) return { admitted: false, retryAfterMs };
    const isTrial = this.#policy.state === CircuitState.Open;
    this.#trialRuns = isTrial;
    return { admitted: true, pass: this.#pass(isTrial) };
  }

  /** Counts an answer that broke off after its first output. */
  async brokeOff(): Promise<void> {
    this.#inARow.breaks += 1;
    await this.#report(new Error("the answer broke off"));
  }

  /** Takes note of an answer that came to its end. */
  ended(): void {
    this.#inARow.breaks = 0; // 1.
  }

  #pass(isTrial: boolean): BreakerPass {
    let reported = false;
    const once = (): boolean => {
      if (reported) return false;
      reported = true;
      if (isTrial) this.#trialRuns = false; // 2.
      return true;
    };
    return {
      succeeded: async () => {
        if (once()) await this.#report();
      },
      failed: async () => {
        if (!once()) return;
        this.#inARow.failures += 1;
        await this.#report(new Error("the endpoint failed"));
      },
      givenUp: () => {
        once();
      },
    };
  }

  /** cockatiel learns outcomes by running something that ends so; while open it refuses, which loses nothing. */
  async #report(failure?: Error): Promise<void> {
    const ended = this.#policy.execute(() => {
      if (failure !== undefined) throw failure;
    });
    await ended.catch(() => undefined);
  }
}

/** What has gone wrong in a row; whoever reports counts, cockatiel asks. */
class InARow implements IBreaker {
  state: unknown;
  failures = 0;
  breaks = 0;
  readonly #toOpen: number;

  constructor(toOpen: number) {
    this.#toOpen = toOpen;
  }

  success(): void {
    this.failures = 0;
  }

  failure(): boolean {
    return Math.max(this.failures, this.breaks) >= this.#toOpen; // 1.
  }
}

/** What to say to those who come while a trial runs, milliseconds. */
const trialRetryMs = 1000;
