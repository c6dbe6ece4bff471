import { type CommandParser, defineScript } from "@redis/client";
import { allInFlight, type Refusal, type RequestLimits, windowUsedUp } from "./limiter.ts";

/*
 * What stands in Redis for each bucket, under names that Redis Cluster keeps together:
 *   media:rate:{bucket}:window  how many requests were admitted; expires with the window.
 *   media:rate:{bucket}:leases  a sorted set, a member for each request in flight, its score when the lease ends in
 *                               milliseconds of Redis's own clock; expires when the last lease would.
 */
function windowKey(bucket: string): string {
  return `media:rate:{${bucket}}:window`;
}

/** Name of the sorted set that holds a bucket's leases. */
export function leasesKey(bucket: string): string {
  return `media:rate:{${bucket}}:leases`;
}

/** What Redis says to a request. */
export type RedisAnswer = "admitted" | Refusal;

/** One request that asks to be admitted; times in milliseconds. */
export interface TakeArguments extends RequestLimits {
  readonly bucket: string;
  readonly lease: string;
  readonly leaseMs: number;
  readonly windowMs: number;
}

const nowMs = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** Decides about one request and counts it when it is admitted. Replies 0, -1 for all in flight, or milliseconds to wait. */
export const takeScript = defineScript({
  SCRIPT: `local admitted = tonumber(redis.call('GET', KEYS[1]) or '0')
if admitted >= tonumber(ARGV[1]) then return math.max(redis.call('PTTL', KEYS[1]), 1) end
${nowMs}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[2]) then return -1 end
if admitted == 0 then redis.call('SET', KEYS[1], 1, 'PX', ARGV[3]) else redis.call('INCR', KEYS[1]) end
redis.call('ZADD', KEYS[2], now + ARGV[4], ARGV[5])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 0`,
  NUMBER_OF_KEYS: 2,
  parseCommand(parser: CommandParser, request: TakeArguments) {
    parser.pushKey(windowKey(request.bucket));
    parser.pushKey(leasesKey(request.bucket));
    const { perMinute, maxInFlight, windowMs, leaseMs, lease } = request;
    parser.push(`${perMinute}`, `${maxInFlight}`, `${windowMs}`, `${leaseMs}`, lease);
  },
  transformReply(reply: number): RedisAnswer {
    if (reply === 0) return "admitted";
    return reply < 0 ? allInFlight : windowUsedUp(reply);
  },
});

/** Lets leases of a bucket last `leaseMs` from now, also those that Redis does not know. */
export const renewScript = defineScript({
  SCRIPT: `${nowMs}
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 0`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, bucket: string, leases: readonly string[], leaseMs: number) {
    parser.pushKey(leasesKey(bucket));
    parser.push(`${leaseMs}`, ...leases);
  },
  transformReply: (reply: number) => reply,
});
