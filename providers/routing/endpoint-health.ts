import type { Clock } from "../../lib/runtime/clock.ts";
import type { ProviderError } from "../contract.ts";
import { Breaker, type BreakerOptions, defaultBreakerOptions } from "./breaker.ts";

/** What is known about an endpoint now. */
export interface HealthReading {
  /** Milliseconds until its breaker lets an attempt in; 0 when it does now. */
  readonly retryAfterMs: number;
  /** Recent time from sending to the first output, milliseconds; undefined when nothing recent is known. */
  readonly firstOutputMs: number | undefined;
  /** Recent speed, in units a second of the caller's choice; undefined when nothing recent is known. */
  readonly unitsPerSecond: number | undefined;
}

/** A way to try an endpoint, or how long to stay away. */
export type Admission =
  | { readonly admitted: true; readonly attempt: AdmittedAttempt }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** What an admitted attempt must report: one of the three, once; later reports are ignored. */
export interface AdmittedAttempt {
  /** Its first output is there. */
  succeeded(firstOutputMs: number): Promise<void>;
  /** It failed; a failure that another endpoint could not have mended speaks for the endpoint. */
  failed(error: ProviderError): Promise<void>;
  /** It was given up by us, which says nothing about the endpoint. */
  givenUp(): void;
}

interface EndpointHealthOptions {
  readonly clock: Clock;
  readonly breaker?: BreakerOptions;
}

/** Weight of a new sample. */
const newWeight = 0.2;
/** After so long without a sample an average expires, milliseconds. */
const expiresAfterMs = 600_000;

/**
 * What this process has lately seen of each endpoint: its breaker and moving averages of its speed. In memory alone;
 * ids come from the catalogue, which bounds it.
 */
export class EndpointHealth {
  readonly #clock: Clock;
  readonly #breakerOptions: BreakerOptions;
  readonly #endpoints = new Map<string, Observed>();

  constructor({ clock, breaker = defaultBreakerOptions }: EndpointHealthOptions) {
    this.#clock = clock;
    this.#breakerOptions = breaker;
  }

  /** What is known now; an endpoint never tried is healthy and of unknown speed. */
  read(endpointId: string): HealthReading {
    const observed = this.#endpoints.get(endpointId);
    const nowMs = this.#clock.monotonicMs();
    return {
      retryAfterMs: observed?.breaker.retryAfterMs ?? 0,
      firstOutputMs: observed?.firstOutputMs.read(nowMs),
      unitsPerSecond: observed?.unitsPerSecond.read(nowMs),
    };
  }

  /** Asks to try an endpoint. */
  admit(endpointId: string): Admission {
    const { breaker, firstOutputMs } = this.#observed(endpointId);
    const admission = breaker.admit();
    if (!admission.admitted) return admission;
    const { pass } = admission;
    const attempt: AdmittedAttempt = {
      succeeded: async (milliseconds) => {
        firstOutputMs.add(milliseconds, this.#clock.monotonicMs());
        await pass.succeeded();
      },
      failed: async (error) => {
        await (error.retryable ? pass.failed() : pass.succeeded());
      },
      givenUp: () => pass.givenUp(),
    };
    return { admitted: true, attempt };
  }

  /** Counts a failure after the first output; one that is not retryable does not count. */
  async recordFailure(endpointId: string, error: ProviderError): Promise<void> {
    if (error.retryable) await this.#observed(endpointId).breaker.countFailure();
  }

  /** Takes note of how fast a whole answer came: more than 0, of one unit for all endpoints of a medium. */
  recordThroughput(endpointId: string, unitsPerSecond: number): void {
    if (!(unitsPerSecond > 0) || !Number.isFinite(unitsPerSecond)) return;
    this.#observed(endpointId).unitsPerSecond.add(unitsPerSecond, this.#clock.monotonicMs());
  }

  #observed(endpointId: string): Observed {
    const known = this.#endpoints.get(endpointId);
    if (known !== undefined) return known;
    const fresh: Observed = {
      breaker: new Breaker(this.#breakerOptions),
      firstOutputMs: new MovingAverage(),
      unitsPerSecond: new MovingAverage(),
    };
    this.#endpoints.set(endpointId, fresh);
    return fresh;
  }
}

interface Observed {
  readonly breaker: Breaker;
  readonly firstOutputMs: MovingAverage;
  readonly unitsPerSecond: MovingAverage;
}

/** An exponentially weighted average that expires when no sample renews it. */
class MovingAverage {
  #value: number | undefined;
  #addedAtMs = 0;

  add(sample: number, nowMs: number): void {
    const known = this.read(nowMs);
    this.#value = known === undefined ? sample : known + newWeight * (sample - known);
    this.#addedAtMs = nowMs;
  }

  read(nowMs: number): number | undefined {
    return nowMs - this.#addedAtMs > expiresAfterMs ? undefined : this.#value;
  }
}
