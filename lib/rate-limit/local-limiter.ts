import { type Clock, systemClock } from "../runtime/clock.ts";
import {
  type Admission,
  AdmissionIds,
  type LimitedRequest,
  once,
  type Refusal,
  type RequestLimiter,
  type RequestLimits,
  refusalError,
  throwIfGone,
} from "./limiter.ts";
import { LocalCounts } from "./local-counts.ts";

interface LocalLimiterOptions {
  readonly limits: RequestLimits;
  readonly clock?: Clock;
  /** Defaults to a minute. */
  readonly windowMs?: number;
}

/** Limits exactly within this process and knows of no other. */
export class LocalLimiter implements RequestLimiter {
  readonly #limits: RequestLimits;
  readonly #counts: LocalCounts;
  readonly #ids = new AdmissionIds();

  constructor({ limits, clock = systemClock, ...options }: LocalLimiterOptions) {
    this.#limits = limits;
    this.#counts = new LocalCounts({ clock, ...options });
  }

  async admit(request: LimitedRequest, signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    throwRefusal(this.#counts.refusal(request, this.#limits));
    this.#counts.begin(request);
    return this.#hold(request, this.#ids.next());
  }

  async enter(request: LimitedRequest, id = this.#ids.next(), signal?: AbortSignal): Promise<Admission> {
    throwIfGone(signal);
    throwRefusal(this.#counts.fullness(request, this.#limits, id));
    return this.#hold(request, id);
  }

  async close(): Promise<void> {}

  #hold({ bucket }: LimitedRequest, id: string): Admission {
    this.#counts.hold(bucket, id);
    return { id, release: once(() => this.#counts.letGo(bucket, id)) };
  }
}

function throwRefusal(refusal: Refusal | undefined): void {
  if (refusal !== undefined) throw refusalError(refusal);
}
