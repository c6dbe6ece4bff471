import { intVar, redisUrlVar } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import type { RequestLimiter } from "./limiter.ts";
import { LocalLimiter } from "./local-limiter.ts";
import { RedisLimiter } from "./redis-limiter.ts";

/** The variables of request limits; gateway, speech and image must agree on them. */
export const rateLimitSpec = {
  RATE_LIMIT_PER_MINUTE: intVar(1, 1_000_000)({ default: 600 }),
  MAX_INFLIGHT_PER_KEY: intVar(1, 100_000)({ default: 64 }),
  REDIS_URL: redisUrlVar({ default: undefined }),
} as const;

/** The limits that an environment stands for. */
export interface RateLimitConfig {
  readonly RATE_LIMIT_PER_MINUTE: number;
  readonly MAX_INFLIGHT_PER_KEY: number;
  readonly REDIS_URL: string | undefined;
}

/**
 * Limits over all processes that use the same Redis, or within this process when none is configured. A Redis that is
 * not there is logged and used once it is.
 */
export async function openRequestLimiter(config: RateLimitConfig, log: Log): Promise<RequestLimiter> {
  const limits = { perMinute: config.RATE_LIMIT_PER_MINUTE, maxInFlight: config.MAX_INFLIGHT_PER_KEY };
  if (config.REDIS_URL === undefined) return new LocalLimiter({ limits });
  return RedisLimiter.open({ url: config.REDIS_URL, limits, log });
}
