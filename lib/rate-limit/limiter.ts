import type { Principal } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";

/** Limits the requests of each rate bucket: how many a minute, and how many at once. */
export interface RequestLimiter {
  /**
   * Counts one request. Throws `rate_limited` or `too_many_in_flight`, each with when to come again; what is refused
   * does not count. Throws `cancelled` when `signal` is aborted by then.
   */
  admit(request: LimitedRequest, signal?: AbortSignal): Promise<Admission>;
  /** Whether what processes share is away now; undefined where nothing is shared. */
  readonly away?: boolean;
  /** Lets go of connections and timers. What is admitted afterwards counts in this process alone. */
  close(): Promise<void>;
}

/** Whose request it is, as far as limits go. */
export interface LimitedRequest {
  /** What it counts under; the keys of one line of rotations share it. */
  readonly bucket: string;
  /** Requests a minute, 1 or more; undefined: the operator's default. */
  readonly perMinute?: number | undefined;
}

/** A request that counts as in flight until it is released. */
export interface Admission {
  /** To be called once the request has ended, however it ended; further calls do nothing. */
  readonly release: () => void;
}

/** How many requests of one bucket may begin in a window, a minute unless a test says else, and run at once. */
export interface RequestLimits {
  readonly perMinute: number;
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
export function limitedRequest({ rateBucket, rateLimitPerMinute }: Principal): LimitedRequest {
  return { bucket: rateBucket, perMinute: rateLimitPerMinute };
}

/** Throws `cancelled` when nobody waits for the answer any more. */
export function throwIfGone(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new DomainError(ErrorReason.CANCELLED, "the caller went away");
}

/** An admission that runs `end` once. */
export function admissionUntil(end: () => void): Admission {
  let ended = false;
  return {
    release() {
      if (ended) return;
      ended = true;
      end();
    },
  };
}
