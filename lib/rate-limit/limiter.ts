import { randomBytes } from "node:crypto";
import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";

/** Limits the requests of each rate bucket and of each account: how many a minute, and how many at once. */
export interface RequestLimiter {
  /**
   * Counts one request. Throws `rate_limited` or `too_many_in_flight`, each with when to come again; what is refused
   * does not count. Throws `cancelled` when `signal` is aborted by then.
   */
  admit(request: LimitedRequest, signal?: AbortSignal): Promise<Admission>;
  /**
   * Goes on with a request that was admitted elsewhere under `id`: it counts once as long as either holds it, and not
   * anew in its minute. Where nobody holds it any more, or without an id, it takes a place of its own. Throws
   * `too_many_in_flight` or `cancelled`.
   */
  enter(request: LimitedRequest, id: string | undefined, signal?: AbortSignal): Promise<Admission>;
  /** What is known of the store that processes share; undefined where nothing is shared. */
  readonly sharing?: SharingCounts;
  /** Lets go of connections and timers. What is admitted afterwards counts in this process alone. */
  close(): Promise<void>;
}

/** How it stands with what processes share. */
export interface SharingCounts {
  readonly away: boolean;
  /** How often it went away since the start: it answered too slowly, or it could not be reached. */
  readonly left: Readonly<Record<"slow" | "failed", number>>;
  /** Requests that were decided within this process alone. */
  readonly decidedAlone: number;
}

/** Whose request it is, as far as limits go. */
export interface LimitedRequest {
  /** What it counts under; the keys of one line of rotations share it. */
  readonly bucket: string;
  /** What it counts under besides; undefined: nothing. A bucket belongs to one account for good. */
  readonly account?: string | undefined;
  /** Requests a minute, 1 or more; undefined: the operator's default. More than his ceiling counts as that. */
  readonly perMinute?: number | undefined;
}

/** A request that counts as in flight until it is released. */
export interface Admission {
  /** Names it, by which others enter. */
  readonly id: string;
  /** To be called once the request has ended, however it ended; further calls do nothing. */
  readonly release: () => void;
}

/** How many requests may begin in a window, a minute unless a test says else, and run at once. */
export interface RequestLimits {
  /** Of a bucket whose requests name no number of their own. */
  readonly perMinute: number;
  /** Of any one bucket; undefined: no ceiling. */
  readonly maxPerMinute?: number | undefined;
  /** Of all buckets of an account together; undefined: no ceiling. */
  readonly accountPerMinute?: number | undefined;
  /** Of one bucket. */
  readonly maxInFlight: number;
}

/** Length of the window in which requests are counted, milliseconds. It begins with a bucket's first request. */
export const rateWindowMs = 60_000;

/** Why a request is refused, and how many milliseconds later it may be tried again. */
export interface Refusal {
  readonly reason: typeof ErrorReason.RATE_LIMITED | typeof ErrorReason.TOO_MANY_IN_FLIGHT;
  readonly retryAfterMs: number;
}

/** The refusal of a bucket whose window is used up and ends so much later. */
export function windowUsedUp(retryAfterMs: number): Refusal {
  return { reason: ErrorReason.RATE_LIMITED, retryAfterMs };
}

/** The refusal of a bucket that has as many requests in flight as it may. */
export const allInFlight: Refusal = { reason: ErrorReason.TOO_MANY_IN_FLIGHT, retryAfterMs: 1000 };

/** A refusal as it is thrown. */
export function refusalError({ reason, retryAfterMs }: Refusal): DomainError {
  const message = reason === ErrorReason.RATE_LIMITED ? "too many requests a minute" : "too many at once";
  return new DomainError(reason, message, { retryAfterMs });
}

/** What a principal's requests count under. */
export function limitedRequest({ accountId, rateBucket, rateLimitPerMinute }: Principal): LimitedRequest {
  return { bucket: rateBucket, account: accountId || undefined, perMinute: rateLimitPerMinute };
}

/** How many requests a minute such a request's bucket may begin. */
export function perMinuteOf({ perMinute }: LimitedRequest, limits: RequestLimits): number {
  return Math.min(perMinute ?? limits.perMinute, limits.maxPerMinute ?? Number.MAX_SAFE_INTEGER);
}

/** Throws `cancelled` when nobody waits for the answer any more. */
export function throwIfGone(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new DomainError(ErrorReason.CANCELLED, "the caller went away");
}

/** Makes ids of admissions that no other process makes. */
export class AdmissionIds {
  readonly #process = randomBytes(9).toString("base64url");
  #last = 0;

  next(): string {
    this.#last += 1;
    return `${this.#process}.${this.#last.toString(36)}`;
  }
}

/** Runs `end` with the first call. */
export function once(end: () => void): () => void {
  let ended = false;
  return () => {
    if (ended) return;
    ended = true;
    end();
  };
}
