import { principalLogFields } from "../../../lib/identity/identity-interceptor.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import { type Span, silentSpan, type Tracer } from "../../../lib/runtime/span.ts";
import type { Exchange } from "../exchange.ts";
import { reasonOf } from "./request-metrics.ts";

/** Routes that are asked all the time by what watches over the process. */
const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

const maxPathLength = 200;
/** Whatever may be an id or a secret that somebody put into a path. */
const longWord = /[\w-]{20,}/g;

/** The path that no route has, without its query and cut: what was asked for, but no texts and no secrets. */
function shownPath(target: string): string {
  const path = target.split("?", 1)[0] ?? "";
  return path.slice(0, maxPathLength).replace(longWord, "…").toWellFormed();
}

/**
 * Writes the one line that each request leaves, and ends its span: what was asked by whom and what came of it; no texts,
 * no secrets.
 */
export function logExchange(log: Log, exchange: Exchange, nowMs: number): void {
  const { request, response, principal } = exchange;
  const reason = reasonOf(exchange);
  log[probes.has(exchange.route) ? "debug" : "info"](
    {
      request_id: exchange.requestId,
      ...exchange.span.logFields,
      method: request.method,
      route: exchange.route,
      ...(exchange.route === "" ? { path: shownPath(request.url ?? "") } : {}),
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
  endRequestSpan(exchange, reason);
}

/** Begins the span of a request whose route is known. */
export function beginRequestSpan(tracer: Tracer, exchange: Exchange): Span {
  const { method = "", headers } = exchange.request;
  const { traceparent } = headers;
  const span = tracer.begin("HTTP", "server", typeof traceparent === "string" ? traceparent : undefined);
  if (!span.recording) return silentSpan;
  // The route's pattern and never the path, which holds whatever a client put there.
  span.rename(exchange.route === "" ? method : `${method} ${exchange.route}`);
  span.set({
    "http.request.method": method,
    "http.route": exchange.route === "" ? undefined : exchange.route,
    "media.request_id": exchange.requestId,
  });
  return span;
}

/** Ends it with what came of the request. `reason`: why it was refused or failed, a word of the closed list, or empty. */
function endRequestSpan(exchange: Exchange, reason: string): void {
  const { span, response, generationId } = exchange;
  if (!span.recording) return;
  span.set({
    "http.response.status_code": response.headersSent ? response.statusCode : undefined,
    "http.response.body.size": exchange.bytesSent,
    "media.generation_id": generationId === "" ? undefined : generationId,
    "media.account_id": exchange.principal?.accountId,
  });
  if (reason === "") span.end();
  else span.end(reason, response.statusCode >= 500);
}
