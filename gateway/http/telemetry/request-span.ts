import { type Span, silentSpan, type Tracer } from "../../../lib/runtime/span.ts";
import type { Exchange } from "../exchange.ts";

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
export function endRequestSpan(exchange: Exchange, reason: string): void {
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
