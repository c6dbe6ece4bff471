import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { wordOfReason } from "../../../lib/runtime/error-code.ts";
import { type Labels, type Metrics, requestSeconds } from "../../../lib/telemetry/metrics.ts";
import type { Exchange } from "../exchange.ts";

/** Methods that are labels by name; clients can make up others. */
const knownMethods: ReadonlySet<string> = new Set([
  "GET",
  "HEAD",
  "POST",
  "PATCH",
  "DELETE",
  "OPTIONS",
  "PUT",
]);

/** Counts by the route's pattern, never by what a client wrote. Undefined without metrics. */
export function measureRequests(metrics: Metrics | undefined) {
  if (metrics === undefined) return undefined;
  const duration = metrics.histogram(
    "http_server_request_duration_seconds",
    "How long requests took, to the last byte of their answers, by route and status, seconds.",
    requestSeconds,
  );
  const firstByte = metrics.histogram(
    "media_gateway_http_first_byte_seconds",
    "From a request's headers to the first byte of its answer's body, of answers that are no errors, seconds.",
    requestSeconds,
  );
  const failures = metrics.counter(
    "media_gateway_http_failures_total",
    "Requests that were refused, failed, or were cut before their answers' end, by reason.",
  );
  let active = 0;
  metrics.observe({
    name: "http_server_active_requests",
    help: "Requests that have not ended.",
    kind: "gauge",
    read: () => active,
  });
  return {
    /** A request has come in. */
    began() {
      active += 1;
    },
    /** Its answer is complete, or its connection is gone. Called once for each that began. */
    ended(exchange: Exchange, nowMs: number) {
      active -= 1;
      const route = exchange.route || "unrouted";
      duration.record((nowMs - exchange.startedMs) / 1000, labelsOf(exchange, route));
      const reason = reasonOf(exchange);
      if (reason !== "") failures.add(1, { http_route: route, reason });
      const { firstByteMs, response } = exchange;
      if (firstByteMs !== undefined && response.statusCode < 400)
        firstByte.record((firstByteMs - exchange.startedMs) / 1000, { http_route: route });
    },
  };
}

function labelsOf({ request, response }: Exchange, route: string): Labels {
  const { method = "" } = request;
  return {
    http_request_method: knownMethods.has(method) ? method : "_OTHER",
    http_route: route,
    ...(response.headersSent ? { http_response_status_code: String(response.statusCode) } : {}),
  };
}

/** Why a request failed, or empty. A connection that closed before its answer had an end of its own: the client left. */
export function reasonOf({ reason, response }: Exchange): string {
  return reason || (response.writableFinished ? "" : wordOfReason(ErrorReason.CANCELLED));
}
