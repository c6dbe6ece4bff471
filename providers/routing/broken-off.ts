import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { ProviderError } from "../contract.ts";
import {
  type AttemptEnd,
  type AttemptEndpoint,
  type AttemptRecord,
  endAttempt,
  reasonOfProviderError,
  toAttemptFailure,
} from "./attempt.ts";
import { logAttempt } from "./attempt-log.ts";
import { healthIdsOf, speaksForEndpoint } from "./candidate.ts";
import type { EndpointHealth } from "./endpoint-health.ts";

/** An answer that broke off after its first output. */
export interface BrokenAnswer<E extends AttemptEndpoint> {
  readonly thrown: unknown;
  /** All attempts in their order; the last one is the winner's. */
  readonly attempts: readonly AttemptRecord<E>[];
  /** Whether one of our own time limits ended it. */
  readonly timedOut: boolean;
  /** Whether that was while output of the upstream was awaited. */
  readonly upstreamSlow: boolean;
  /** Whether it was ended because the caller went away. */
  readonly cancelled: boolean;
  readonly generationId: string;
  readonly health: Pick<EndpointHealth, "recordFailure">;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a broken answer means. */
export interface BrokenOff<E extends AttemptEndpoint> {
  readonly error: DomainError;
  /** All attempts in their order, all of them ended. */
  readonly attempts: readonly AttemptRecord<E>[];
}

/**
 * What a failure after the first output means for the caller. A failure of the provider is logged and speaks for the
 * health of its endpoint; the attempts of the error are all that there were.
 */
export function brokenOff<E extends AttemptEndpoint>(answer: BrokenAnswer<E>): BrokenOff<E> {
  const { attempts, health, clock, generationId, log } = answer;
  const failure = failureOf(answer);
  const lastEnded = (end: AttemptEnd) =>
    attempts.map((record, index) =>
      index === attempts.length - 1 ? endAttempt(record, end, clock) : record,
    );
  if (failure instanceof DomainError) {
    const outcome = failure.reason === ErrorReason.CANCELLED ? Outcome.CANCELLED : Outcome.FAILED;
    return { error: failure, attempts: lastEnded({ outcome, reason: failure.reason }) };
  }
  const reason = reasonOfProviderError(failure);
  const ended = lastEnded({
    outcome: Outcome.FAILED,
    reason,
    providerStatus: failure.status ?? 0,
    error: failure,
  });
  const winner = ended.at(-1);
  if (winner !== undefined) {
    if (speaksForEndpoint(winner.endpoint, failure)) {
      void health.recordFailure(failure, ...healthIdsOf(winner.endpoint));
    }
    logAttempt(log, generationId, winner);
  }
  const error = new DomainError(reason, "the provider failed during its answer", {
    cause: failure,
    attempts: ended.map(toAttemptFailure),
  });
  return { error, attempts: ended };
}

/** A failure of the provider as ProviderError; what is not the provider's as DomainError. */
function failureOf({ thrown, timedOut, upstreamSlow, cancelled }: BrokenAnswer<AttemptEndpoint>) {
  if (cancelled) return new DomainError(ErrorReason.CANCELLED, "cancelled", { cause: thrown });
  // The caller took the answer too slowly: that says nothing about the provider.
  if (timedOut && !upstreamSlow) {
    return new DomainError(ErrorReason.TIMED_OUT, "the answer was not taken in time", { cause: thrown });
  }
  if (timedOut) return new ProviderError("timeout", "the answer did not end in time", { cause: thrown });
  return thrown instanceof ProviderError ? thrown : DomainError.from(thrown);
}
