import { type Clock, systemClock } from "../runtime/clock.ts";
import {
  type Admission,
  admissionUntil,
  type LimitedRequest,
  type RequestLimiter,
  type RequestLimits,
  refusalError,
  throwIfGone,
} from "./limiter.ts";
import { LocalCounts } from "./local-counts.ts";

/** Limits of one process. */
export interface LocalLimiterOptions {
  readonly limits: RequestLimits;
  readonly clock?: Clock;
  /** Defaults to a minute. */
  readonly windowMs?: number;
}

/** Limits exactly within this process and knows of no other. */
export class LocalLimiter implements RequestLimiter {
  readonly #limits: RequestLimits;
  readonly #counts: LocalCounts;

  constructor({ limits, clock = systemClock, ...options }: LocalLimiterOptions) {
    this.#limits = limits;
    this.#counts = new LocalCounts({ clock, ...options });
  }

  async admit({ bucket, perMinute }: LimitedRequest, signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    const { maxInFlight, perMinute: defaultPerMinute } = this.#limits;
    const refusal = this.#counts.refusal(bucket, { perMinute: perMinute ?? defaultPerMinute, maxInFlight });
    if (refusal !== undefined) throw refusalError(refusal);
    this.#counts.add(bucket);
    return admissionUntil(() => this.#counts.remove(bucket));
  }

  async close(): Promise<void> {}
}
