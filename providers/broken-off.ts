import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../gen/media/event/v1/generation_event_pb.ts";
import type { Clock } from "../lib/runtime/clock.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";
import type { Log } from "../lib/runtime/log.ts";
import { type AttemptRecord, endAttempt, reasonOfProviderError, toAttemptFailure } from "./attempt.ts";
import { logAttempt } from "./attempt-log.ts";
import { ProviderError } from "./contract.ts";
import type { EndpointHealth } from "./endpoint-health.ts";

/** An answer that broke off after its first output. */
export interface BrokenAnswer {
  readonly thrown: unknown;
  /** All attempts in their order; the last one is the winner's. */
  readonly attempts: readonly AttemptRecord[];
  /** Whether one of our own time limits ended it. */
  readonly timedOut: boolean;
  /** Whether that was while output of the upstream was awaited. */
  readonly upstreamSlow: boolean;
  /** Whether the caller went away. */
  readonly cancelled: boolean;
  readonly generationId: string;
  readonly health: Pick<EndpointHealth, "recordFailure">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What a failure after the first output means for the caller. A failure of the provider is logged and speaks for the
 * health of its endpoint; the attempts of the error are all that there were.
 */
export function brokenOff(answer: BrokenAnswer): DomainError {
  const { thrown, attempts, timedOut, upstreamSlow, cancelled, generationId, health, clock, log } = answer;
  if (cancelled && !timedOut) return new DomainError(ErrorReason.CANCELLED, "cancelled", { cause: thrown });
  // The caller took the answer too slowly: that says nothing about the provider.
  if (timedOut && !upstreamSlow) {
    return new DomainError(ErrorReason.TIMED_OUT, "the answer was not taken in time", { cause: thrown });
  }
  const error = timedOut
    ? new ProviderError("timeout", "the answer did not end in time", { cause: thrown })
    : thrown;
  if (!(error instanceof ProviderError)) return DomainError.from(error);
  const winner = attempts.at(-1);
  const reason = reasonOfProviderError(error);
  const end = { outcome: Outcome.FAILED, reason, providerStatus: error.status ?? 0, error };
  const ended = winner === undefined ? [] : [endAttempt(winner, end, clock)];
  for (const record of ended) {
    void health.recordFailure(record.endpoint.id, error);
    logAttempt(log, generationId, record);
  }
  return new DomainError(reason, "the provider failed during its answer", {
    cause: error,
    attempts: [...attempts.slice(0, -1), ...ended].map(toAttemptFailure),
  });
}
