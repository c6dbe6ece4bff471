import { Code, type Interceptor } from "@connectrpc/connect";
import { followCall, nameOfCall } from "../rpc/call-spans.ts";
import { requestIdKey, requestLogKey } from "../rpc/request-context.ts";
import { spanKey, type Tracer, traceparentHeader } from "../runtime/span.ts";
import { callerKey } from "./caller.ts";

/**
 * Server side, inside of the identity interceptor: a span for each call. That of a process of ours is recorded if that
 * process records it; that of anybody else is drawn. Handlers find the span under `spanKey`, and the call's log names it.
 * Without identity there is no telling whom to believe: calls that are refused for it have no span here.
 */
export function traceIncomingCalls(tracer: Tracer): Interceptor {
  return (next) => (request) => {
    const { contextValues, header } = request;
    const isOurs = contextValues.get(callerKey).kind === "process";
    const name = nameOfCall(request);
    const traceparent = header.get(traceparentHeader);
    const span = isOurs
      ? tracer.join(name, "server", traceparent)
      : tracer.begin(name, "server", traceparent);
    if (span.logFields === undefined) return next(request);
    contextValues.set(spanKey, span);
    contextValues.set(requestLogKey, contextValues.get(requestLogKey).child(span.logFields));
    span.set({ "media.request_id": contextValues.get(requestIdKey) });
    return followCall(span, request, next, (code) => serverFaults.has(code));
  };
}

/** What a server has to answer for; all else is the caller's. */
const serverFaults: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Aborted,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);
