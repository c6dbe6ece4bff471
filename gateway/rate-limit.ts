import { limitedRequest, type RequestLimiter } from "../lib/rate-limit/limiter.ts";
import type { Operation } from "./error-body.ts";
import type { Admission } from "./route.ts";

const limitedOperations: ReadonlySet<Operation> = new Set(["speech", "images"]);

/**
 * Counts what generates under its key's bucket, in flight until its answer has ended or its connection is gone; all
 * else is unlimited. Throws rate_limited or too_many_in_flight.
 */
export function limitRequests(limiter: RequestLimiter): Admission {
  return async (exchange) => {
    const { operation, principal, response } = exchange;
    if (principal === undefined || !limitedOperations.has(operation)) return;
    const { release } = await limiter.admit(limitedRequest(principal), exchange.clientGone);
    response.once("close", release);
    if (response.destroyed) release();
  };
}
