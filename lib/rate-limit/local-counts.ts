/*
 * Owns what this process has admitted: what began, by bucket and by account, in windows (rate-windows.ts), and what is
 * in flight, by bucket and id. The latter is counted apart and only while there is any, so that it outlives windows and
 * is bounded by the requests that run.
 */
import { HeldIds } from "./held-ids.ts";
import {
  allInFlight,
  type LimitedRequest,
  perMinuteOf,
  type Refusal,
  type RequestLimits,
  windowUsedUp,
} from "./limiter.ts";
import { RateWindows, type RateWindowsOptions } from "./rate-windows.ts";

/** What a window counts the requests of. */
export type WindowKind = "bucket" | "account";

/** Requests of this process: begun in the windows of buckets and accounts, and in flight. */
export class LocalCounts {
  readonly #buckets: RateWindows;
  readonly #accounts: RateWindows;
  readonly #inFlight = new Map<string, HeldIds>();

  constructor(options: RateWindowsOptions) {
    this.#buckets = new RateWindows(options);
    this.#accounts = new RateWindows(options);
  }

  /** Entries kept, for tests of their bound. */
  get size(): { windows: number; inFlight: number } {
    return { windows: this.#buckets.size, inFlight: this.#inFlight.size };
  }

  /** Why one more request is refused; undefined when it is not. */
  refusal(request: LimitedRequest, limits: RequestLimits): Refusal | undefined {
    const bucketMs = this.#buckets.waitMs(request.bucket, perMinuteOf(request, limits));
    const accountMs = this.#accountWaitMs(request, limits);
    if (bucketMs > 0 || accountMs > 0) return windowUsedUp(Math.max(bucketMs, accountMs));
    return this.fullness(request, limits);
  }

  /** Why a request that began elsewhere, there under `id`, can't go on here; undefined when it can. */
  fullness({ bucket }: LimitedRequest, { maxInFlight }: RequestLimits, id?: string): Refusal | undefined {
    const held = this.#inFlight.get(bucket);
    if (held === undefined || held.size < maxInFlight) return undefined;
    return id !== undefined && held.has(id) ? undefined : allInFlight;
  }

  begin({ bucket, account }: LimitedRequest): void {
    this.#buckets.add(bucket);
    if (account !== undefined) this.#accounts.add(account);
  }

  /** When a window ends, monotonic milliseconds; undefined when none lasts. */
  endsMs(kind: WindowKind, name: string): number | undefined {
    return this.#windowsOf(kind).endsMs(name);
  }

  /** What all processes have begun of a bucket or an account. */
  learn(kind: WindowKind, name: string, begun: number, leftMs: number): void {
    this.#windowsOf(kind).learn(name, begun, leftMs);
  }

  hold(bucket: string, id: string): void {
    const known = this.#inFlight.get(bucket);
    const held = known ?? new HeldIds();
    if (known === undefined) this.#inFlight.set(bucket, held);
    held.hold(id);
  }

  letGo(bucket: string, id: string): void {
    const held = this.#inFlight.get(bucket);
    held?.letGo(id);
    if (held?.size === 0) this.#inFlight.delete(bucket);
  }

  #windowsOf(kind: WindowKind): RateWindows {
    return kind === "bucket" ? this.#buckets : this.#accounts;
  }

  #accountWaitMs({ account }: LimitedRequest, { accountPerMinute }: RequestLimits): number {
    if (account === undefined || accountPerMinute === undefined) return 0;
    return this.#accounts.waitMs(account, accountPerMinute);
  }
}
