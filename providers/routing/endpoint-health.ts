import type { Clock } from "../../lib/runtime/clock.ts";
import type { ProviderError, ProviderErrorKind } from "../contract.ts";
import { Breaker, type BreakerOptions, type BreakerPass, defaultBreakerOptions } from "./breaker.ts";
import { speaksForKey } from "./candidate.ts";
import { longestSpanMs, type OutcomeCount, RollingOutcomes } from "./rolling-outcomes.ts";

/** What is known about an endpoint now. */
export interface HealthReading {
  /** Milliseconds until its breaker lets an attempt in; 0 when it does now. */
  readonly retryAfterMs: number;
  /** Whether it had an outage in the last 30 s: its breaker opened, or a fifth of what ended then failed. */
  readonly recentOutage: boolean;
  /** Recent time from sending to the first output, milliseconds; undefined when nothing recent is known. */
  readonly firstOutputMs: number | undefined;
  /** Recent speed, in units a second of the caller's choice; undefined when nothing recent is known. */
  readonly unitsPerSecond: number | undefined;
}

/** A failure that speaks for an endpoint or a key. */
export interface LastFailure {
  readonly kind: ProviderErrorKind;
  /** Wall clock, Unix milliseconds. */
  readonly atMs: number;
}

/** A way to try an endpoint, or how long to stay away. */
export type Admission =
  | { readonly admitted: true; readonly attempt: AdmittedAttempt }
  | { readonly admitted: false; readonly retryAfterMs: number };

/** What an admitted attempt must report: one of the three, once; later reports are ignored. */
export interface AdmittedAttempt {
  /** Its first output is there; how the answer ends is recorded apart. */
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
const outageSpanMs = 30_000;
const outageShare = 0.2;

/**
 * What this process has lately seen of each endpoint: its breaker, how attempts ended, and moving averages of its speed.
 * In memory alone; ids come from the catalogue, which bounds it.
 *
 * Where the operator has several keys of a provider, each has a health of its own at an endpoint (`keyId`): a key that is
 * refused or over its limit says nothing about the endpoint, and everything else says nothing about the key.
 */
export class EndpointHealth {
  readonly #clock: Clock;
  readonly #breakerOptions: BreakerOptions;
  readonly #observed = new Map<string, Observed>();

  constructor({ clock, breaker = defaultBreakerOptions }: EndpointHealthOptions) {
    this.#clock = clock;
    this.#breakerOptions = breaker;
  }

  /** What is known now; an endpoint never tried is healthy and of unknown speed. */
  read(endpointId: string, keyId = endpointId): HealthReading {
    const [endpoint, key] = [this.#observed.get(endpointId), this.#observed.get(keyId)];
    const nowMs = this.#clock.monotonicMs();
    return {
      retryAfterMs: Math.max(endpoint?.breaker.retryAfterMs ?? 0, key?.breaker.retryAfterMs ?? 0),
      recentOutage: hadOutage(endpoint, nowMs) || hadOutage(key, nowMs),
      firstOutputMs: endpoint?.firstOutputMs.read(nowMs),
      unitsPerSecond: endpoint?.unitsPerSecond.read(nowMs),
    };
  }

  /** How attempts ended in the last `spanMs`, half an hour at most. Those that we gave up are not in it. */
  outcomes(endpointId: string, spanMs = longestSpanMs): OutcomeCount {
    const observed = this.#observed.get(endpointId);
    return observed?.outcomes.count(spanMs, this.#clock.monotonicMs()) ?? { ended: 0, failed: 0 };
  }

  /** The last failure that counted, since the process began. */
  lastFailure(id: string): LastFailure | undefined {
    return this.#observed.get(id)?.lastFailure;
  }

  /** Asks to try an endpoint. */
  admit(endpointId: string, keyId = endpointId): Admission {
    const endpoint = this.#of(endpointId);
    const key = this.#of(keyId);
    const retryAfterMs = Math.max(endpoint.breaker.retryAfterMs, key.breaker.retryAfterMs);
    if (retryAfterMs > 0) return { admitted: false, retryAfterMs };
    const pass = passOf(endpoint);
    const keyPass = key === endpoint ? pass : passOf(key);
    const attempt: AdmittedAttempt = {
      succeeded: async (milliseconds) => {
        endpoint.firstOutputMs.add(milliseconds, this.#clock.monotonicMs());
        await Promise.all([pass.succeeded(), keyPass.succeeded()]);
      },
      failed: async (error) => {
        const [blamed, spared] = speaksForKey(error) ? [keyPass, pass] : [pass, keyPass];
        this.#count(error, blamed === pass ? endpoint : key);
        const reported = error.retryable ? blamed.failed() : blamed.succeeded();
        spared.givenUp();
        await reported;
      },
      givenUp: () => {
        pass.givenUp();
        keyPass.givenUp();
      },
    };
    return { admitted: true, attempt };
  }

  /** Counts an answer that broke off after its first output; by an error that is not retryable it came to its end. */
  async recordFailure(error: ProviderError, endpointId: string, keyId = endpointId): Promise<void> {
    const observed = this.#of(speaksForKey(error) ? keyId : endpointId);
    this.#count(error, observed);
    if (error.retryable) await observed.breaker.brokeOff();
    else observed.breaker.ended();
  }

  /**
   * Takes note of an answer that came whole, and how fast: more than 0, of one unit for all endpoints of a medium; any
   * other speed is not taken.
   */
  recordAnswer(unitsPerSecond: number, endpointId: string, keyId = endpointId): void {
    const endpoint = this.#of(endpointId);
    for (const observed of new Set([endpoint, this.#of(keyId)])) {
      this.#count(undefined, observed);
      observed.breaker.ended();
    }
    if (!(unitsPerSecond > 0) || !Number.isFinite(unitsPerSecond)) return;
    endpoint.unitsPerSecond.add(unitsPerSecond, this.#clock.monotonicMs());
  }

  #count(error: ProviderError | undefined, observed: Observed): void {
    const failed = error?.retryable === true;
    observed.outcomes.add(failed, this.#clock.monotonicMs());
    if (failed) observed.lastFailure = { kind: error.kind, atMs: this.#clock.nowMs() };
  }

  #of(id: string): Observed {
    const known = this.#observed.get(id);
    if (known !== undefined) return known;
    const fresh: Observed = {
      breaker: new Breaker(this.#breakerOptions),
      outcomes: new RollingOutcomes(),
      firstOutputMs: new MovingAverage(),
      unitsPerSecond: new MovingAverage(),
    };
    this.#observed.set(id, fresh);
    return fresh;
  }
}

interface Observed {
  readonly breaker: Breaker;
  readonly outcomes: RollingOutcomes;
  readonly firstOutputMs: MovingAverage;
  readonly unitsPerSecond: MovingAverage;
  lastFailure?: LastFailure;
}

function hadOutage(observed: Observed | undefined, nowMs: number): boolean {
  if (observed === undefined) return false;
  if (observed.breaker.openedWithin(outageSpanMs)) return true;
  const { ended, failed } = observed.outcomes.count(outageSpanMs, nowMs);
  return failed > 0 && failed >= outageShare * ended;
}

function passOf({ breaker }: Observed): BreakerPass {
  const admission = breaker.admit();
  if (!admission.admitted) throw new Error("its breaker was asked before");
  return admission.pass;
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
