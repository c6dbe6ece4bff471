import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { principalLogFields } from "../lib/identity/identity-interceptor.ts";
import { wordOfReason } from "../lib/runtime/error-code.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { Exchange } from "./exchange.ts";

/** Writes the one line that each request leaves: what was asked by whom and what came of it; no texts, no secrets. */
export function logExchange(log: Log, exchange: Exchange, nowMs: number): void {
  const { request, response, principal } = exchange;
  // A connection that closed before its answer had an end of its own was closed by the client.
  const reason = exchange.reason || (response.writableFinished ? "" : wordOfReason(ErrorReason.CANCELLED));
  log.info(
    {
      request_id: exchange.requestId,
      method: request.method,
      route: exchange.route,
      status: response.headersSent ? response.statusCode : 0,
      complete: response.writableFinished,
      ms: Math.round(nowMs - exchange.startedMs),
      bytes: exchange.bytesSent,
      ...(reason === "" ? {} : { reason }),
      ...(exchange.generationId === "" ? {} : { generation_id: exchange.generationId }),
      ...(principal === undefined ? {} : principalLogFields(principal)),
    },
    "request",
  );
}
