import type { DescMethod } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { callerKey } from "../identity/caller.ts";
import { callLifeOf } from "../rpc/call-life.ts";
import { admissionIdOf } from "./admission-id.ts";
import { limitedRequest, type RequestLimiter } from "./limiter.ts";
import type { LoadShedder } from "./load-shedder.ts";

interface LimitInterceptorOptions {
  readonly limiter: RequestLimiter;
  /** Decides by what the process can carry; everything is carried unless given. */
  readonly shedder?: LoadShedder | undefined;
  /** The RPCs that count; all others are unlimited. */
  readonly methods: readonly DescMethod[];
}

/**
 * Server side, inside of the identity interceptor: counts the calls that are made for a key, as long as their life
 * lasts (call-life.ts). Those of people's programs begin here. Those that a process makes for them began there, and
 * go on here under the id that it names; so each counts once.
 */
export function createLimitInterceptor({ limiter, shedder, methods }: LimitInterceptorOptions): Interceptor {
  const limited = new Set(methods);
  return (next) => async (request) => {
    const caller = request.contextValues.get(callerKey);
    if (!limited.has(request.method) || (caller.kind !== "key" && caller.kind !== "process"))
      return next(request);
    if (caller.principal === undefined) return next(request);
    const { signal, header } = request;
    const asked = limitedRequest(caller.principal);
    const life = callLifeOf(request.contextValues);
    const admission =
      caller.kind === "key"
        ? await limiter.admit(asked, signal)
        : await limiter.enter(asked, admissionIdOf(header), signal);
    life.whenOver(admission.release);
    if (shedder !== undefined) life.whenOver(await shedder.admit(admission.id, signal));
    return next(request);
  };
}
