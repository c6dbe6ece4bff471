import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { callerKey } from "../identity/caller.ts";
import { limitedRequest, type RequestLimiter } from "./limiter.ts";

/** What a service limits. */
export interface LimitInterceptorOptions {
  readonly limiter: RequestLimiter;
  /** The RPCs that count; all others are unlimited. */
  readonly methods: readonly DescMethod[];
}

/**
 * Server side, inside of the identity interceptor: counts the calls that people's programs make themselves. What a
 * process calls for them was counted where they came in. A call is in flight until its signal is aborted, which
 * happens when it ends, fails, is cancelled or runs out of time, over every transport.
 */
export function createLimitInterceptor({ limiter, methods }: LimitInterceptorOptions): Interceptor {
  const limited = new Set(methods);
  return (next) => async (request) => {
    const caller = request.contextValues.get(callerKey);
    if (caller.kind !== "key" || !limited.has(request.method)) return next(request);
    const { signal } = request;
    const { release } = await limiter.admit(limitedRequest(caller.principal), signal);
    signal.addEventListener("abort", release, { once: true });
    if (signal.aborted) release();
    return next(request);
  };
}
