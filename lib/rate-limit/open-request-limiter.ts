import { type ConfigOf, intVar, redisUrlVar } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import type { RequestLimiter, RequestLimits } from "./limiter.ts";
import { LocalLimiter } from "./local-limiter.ts";

/** How many requests a minute a key has by default, and how many it may be given; account asks for it, too. */
export const rateCeilingSpec = {
  RATE_LIMIT_PER_MINUTE: intVar(1, 1_000_000)({ default: 600 }),
  MAX_RATE_LIMIT_PER_MINUTE: intVar(1, 1_000_000)({ default: undefined }),
} as const;

/** The variables of request limits; gateway, speech and image must agree on them. */
export const rateLimitSpec = {
  ...rateCeilingSpec,
  ACCOUNT_RATE_LIMIT_PER_MINUTE: intVar(1, 100_000_000)({ default: undefined }),
  MAX_INFLIGHT_PER_KEY: intVar(1, 100_000)({ default: 64 }),
  REDIS_URL: redisUrlVar({ default: undefined }),
} as const;

type RateLimitConfig = ConfigOf<typeof rateLimitSpec>;

/** A ceiling that the operator did not choose, as a multiple of what a key has by default. */
const ceilingFactor = 10;

/** The most requests a minute that a key may have. */
export function keyRateCeiling(config: ConfigOf<typeof rateCeilingSpec>): number {
  return config.MAX_RATE_LIMIT_PER_MINUTE ?? ceilingFactor * config.RATE_LIMIT_PER_MINUTE;
}

/** The limits of requests. */
export function requestLimits(config: Omit<RateLimitConfig, "REDIS_URL">): RequestLimits {
  return {
    perMinute: config.RATE_LIMIT_PER_MINUTE,
    maxPerMinute: keyRateCeiling(config),
    accountPerMinute: config.ACCOUNT_RATE_LIMIT_PER_MINUTE ?? ceilingFactor * config.RATE_LIMIT_PER_MINUTE,
    maxInFlight: config.MAX_INFLIGHT_PER_KEY,
  };
}

/**
 * Limits over all processes that use the same Redis, or within this process when none is configured. A Redis that is
 * not there is logged and used once it is.
 */
export async function openRequestLimiter(config: RateLimitConfig, log: Log): Promise<RequestLimiter> {
  const limits = requestLimits(config);
  if (config.REDIS_URL === undefined) return new LocalLimiter({ limits });
  // Its client is a quarter of what a gateway would load.
  const { RedisLimiter } = await import("./redis-limiter.ts");
  return RedisLimiter.open({ url: config.REDIS_URL, limits, log });
}
