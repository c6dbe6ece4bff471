import type { Interceptor } from "@connectrpc/connect";
import { createIdentityInterceptor, type IdentityOptions } from "../identity/identity-interceptor.ts";
import { traceIncomingCalls } from "../identity/trace-calls.ts";
import { serverInterceptor } from "../rpc/interceptors.ts";
import type { Log } from "../runtime/log.ts";
import { silentTracer, type Tracer } from "../runtime/span.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { measureCalls } from "../telemetry/metrics-calls.ts";

/** What every service does with a call. */
export interface CallOptions extends IdentityOptions {
  readonly log: Log;
  readonly metrics?: Metrics | undefined;
  /** Records nothing unless given. */
  readonly tracer?: Tracer | undefined;
  /** What turns failures of the service's own into errors for its callers. */
  readonly translate?: readonly Interceptor[];
}

/** What a process hands to each of its services for that. */
export type ServiceCallOptions = Omit<CallOptions, "audience" | "translate">;

/** Server side, outermost first: request id, log and metrics; errors of the service's own; who calls; the call's span. */
export function callInterceptors({ translate = [], ...options }: CallOptions): Interceptor[] {
  return [
    serverInterceptor(options.log, measureCalls(options.metrics)),
    ...translate,
    createIdentityInterceptor(options),
    traceIncomingCalls(options.tracer ?? silentTracer),
  ];
}
