import { limitedRequest, type RequestLimiter } from "../../lib/rate-limit/limiter.ts";
import type { LoadShedder } from "../../lib/rate-limit/load-shedder.ts";
import { isLimited } from "./error-body.ts";
import type { Admission } from "./route.ts";

/**
 * Counts what generates under its key's bucket, in flight until its answer has ended or its connection is gone, and lets
 * in what the process can carry, where a shedder is given. Throws rate_limited, too_many_in_flight or overloaded.
 */
export function limitRequests(limiter: RequestLimiter, shedder?: LoadShedder): Admission {
  return async (exchange) => {
    const { operation, principal, response } = exchange;
    if (principal === undefined || !isLimited(operation)) return;
    const { clientGone } = exchange;
    const untilClosed = (release: () => void) => {
      response.once("close", release);
      if (response.destroyed) release();
    };
    const { id, release } = await limiter.admit(limitedRequest(principal), clientGone);
    exchange.admissionId = id;
    untilClosed(release);
    if (shedder !== undefined) untilClosed(await shedder.admit(id, clientGone));
  };
}
