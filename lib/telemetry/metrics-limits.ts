import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { RequestLimiter } from "../rate-limit/limiter.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import type { Metrics } from "./metrics.ts";

const refusals: readonly ErrorReason[] = [ErrorReason.RATE_LIMITED, ErrorReason.TOO_MANY_IN_FLIGHT];

/** A limiter that counts what it refuses, and tells whether the processes' common limits are away. */
export function measureLimiter(metrics: Metrics, limiter: RequestLimiter): RequestLimiter {
  const refused = metrics.counter(
    "media_gateway_rate_limit_refusals_total",
    "Requests refused because their key had too many, by reason.",
  );
  for (const reason of refusals) refused.add(0, { reason: wordOfReason(reason) });
  if (limiter.away !== undefined) {
    metrics.observe({
      name: "media_gateway_redis_away",
      help: "1 while Redis is away and requests are limited in this process alone, else 0.",
      kind: "gauge",
      read: () => (limiter.away ? 1 : 0),
    });
  }
  return {
    async admit(request, signal) {
      try {
        return await limiter.admit(request, signal);
      } catch (thrown) {
        if (thrown instanceof DomainError && refusals.includes(thrown.reason))
          refused.add(1, { reason: wordOfReason(thrown.reason) });
        throw thrown;
      }
    },
    close: () => limiter.close(),
  };
}
