import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { wordOfReason } from "../runtime/error-code.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import type { AddressLimiter } from "./address-limiter.ts";
import type { RequestLimiter } from "./limiter.ts";
import type { LoadShedder } from "./load-shedder.ts";

const refusals: readonly ErrorReason[] = [ErrorReason.RATE_LIMITED, ErrorReason.TOO_MANY_IN_FLIGHT];

/** A limiter that counts what it refuses, and exports how it stands with what processes share. */
export function measureLimiter(metrics: Metrics, limiter: RequestLimiter): RequestLimiter {
  const refused = metrics.counter(
    "media_gateway_rate_limit_refusals_total",
    "Requests refused because their key had too many, by reason.",
  );
  for (const reason of refusals) refused.add(0, { reason: wordOfReason(reason) });
  watchSharing(metrics, limiter);
  const counted = async <T>(decision: Promise<T>): Promise<T> => {
    try {
      return await decision;
    } catch (thrown) {
      if (thrown instanceof DomainError && refusals.includes(thrown.reason))
        refused.add(1, { reason: wordOfReason(thrown.reason) });
      throw thrown;
    }
  };
  return {
    admit: (request, signal) => counted(limiter.admit(request, signal)),
    enter: (request, id, signal) => counted(limiter.enter(request, id, signal)),
    close: () => limiter.close(),
  };
}

/** Tells how many requests a process carries, and counts those that it refused because it could carry no more. */
export function watchLoad(metrics: Metrics, shedder: LoadShedder): void {
  metrics.observe({
    name: "media_gateway_admitted_requests",
    help: "Requests that generate, or whose generation goes on, in this process.",
    kind: "gauge",
    read: () => shedder.running,
  });
  metrics.observe({
    name: "media_gateway_shed_requests_total",
    help: "Requests refused because this process could carry no more, by what it had too much of.",
    kind: "counter",
    read: () => Object.entries(shedder.refused).map(([cause, value]) => ({ value, labels: { cause } })),
  });
}

/** Counts the requests that were refused because too many without a good key came from their address. */
export function watchStrangers(metrics: Metrics, limiter: AddressLimiter): AddressLimiter {
  metrics.observe({
    name: "media_gateway_address_refusals_total",
    help: "Requests without a known key refused because too many such came from their address.",
    kind: "counter",
    read: () => limiter.refused,
  });
  return limiter;
}

/** Tells when and how often requests were limited in this process alone; nothing where nothing is shared. */
function watchSharing(metrics: Metrics, limiter: RequestLimiter): void {
  if (limiter.sharing === undefined) return;
  metrics.observe({
    name: "media_gateway_redis_away",
    help: "1 while Redis is away and requests are limited in this process alone, else 0.",
    kind: "gauge",
    read: () => (limiter.sharing?.away ? 1 : 0),
  });
  metrics.observe({
    name: "media_gateway_redis_left_total",
    help: "How often Redis went away: it answered too slowly, or it could not be used.",
    kind: "counter",
    read: () =>
      Object.entries(limiter.sharing?.left ?? {}).map(([cause, value]) => ({ value, labels: { cause } })),
  });
  metrics.observe({
    name: "media_gateway_rate_limit_alone_total",
    help: "Requests that were limited in this process alone because Redis was away.",
    kind: "counter",
    read: () => limiter.sharing?.decidedAlone,
  });
}
