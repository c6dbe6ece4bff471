import { type CommandParser, defineScript } from "@redis/client";
import {
  allInFlight,
  type LimitedRequest,
  perMinuteOf,
  type Refusal,
  type RequestLimits,
  windowUsedUp,
} from "./limiter.ts";

/*
 * What stands in Redis for each bucket, under names that Redis Cluster keeps with its account:
 *   media:rate:{account}:bucket:window   how many requests were admitted; expires with the window.
 *   media:rate:{account}:bucket:leases   a sorted set, a member for each request in flight, its score when the last
 *                                        lease on it ends, in milliseconds of Redis's own clock.
 *   media:rate:{account}:bucket:holders  a sorted set, a member for each lease: a request's id and who holds it.
 *   media:rate:{account}:window          how many requests of all its buckets were admitted.
 * The sorted sets expire when their last leases would.
 */

type Counted = Pick<LimitedRequest, "bucket" | "account">;

function keyOf({ bucket, account = bucket }: Counted, what: string): string {
  return `media:rate:{${account}}:${bucket}:${what}`;
}

/** Name of the counter of a bucket's window. */
export function windowKey(counted: Counted): string {
  return keyOf(counted, "window");
}

/** Name of the counter of an account's window. */
export function accountWindowKey(account: string): string {
  return `media:rate:{${account}}:window`;
}

/** Name of the sorted set of a bucket's requests in flight. */
export function leasesKey(counted: Counted): string {
  return keyOf(counted, "leases");
}

/** Name of the sorted set of who holds them. */
export function holdersKey(counted: Counted): string {
  return keyOf(counted, "holders");
}

/** What Redis says to a request. */
export type RedisAnswer = "admitted" | Refusal;

/** One lease on a request in flight. */
export interface Lease {
  readonly request: LimitedRequest;
  readonly id: string;
  /** Where it was admitted, or where it went on. */
  readonly holder: "admitted" | "entered";
}

/** A lease that is asked for, and how long it and windows last, milliseconds. */
export interface LeaseQuestion extends Lease {
  readonly limits: RequestLimits;
  readonly leaseMs: number;
  readonly windowMs: number;
}

const nowMs = `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/** KEYS 1 and 2 are leases and holders. */
const dropEnded = `redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)`;

const expireLeases = (leaseMs: string) => `redis.call('PEXPIRE', KEYS[1], ${leaseMs})
redis.call('PEXPIRE', KEYS[2], ${leaseMs})`;

/** ARGV 1 to 4 are the most in flight, the length of a lease, the request's id and its holder. */
const hold = `redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[3])
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[3] .. ' ' .. ARGV[4])
${expireLeases("ARGV[2]")}
return 0`;

function pushLeaseKeys(parser: CommandParser, counted: Counted): void {
  parser.pushKey(leasesKey(counted));
  parser.pushKey(holdersKey(counted));
}

function pushLease(parser: CommandParser, { id, holder, limits, leaseMs }: LeaseQuestion): void {
  parser.push(`${limits.maxInFlight}`, `${leaseMs}`, id, holder);
}

function readAnswer(reply: number): RedisAnswer {
  if (reply === 0) return "admitted";
  return reply < 0 ? allInFlight : windowUsedUp(reply);
}

/** Decides about one request and counts it when it is admitted. Replies 0, -1 for all in flight, or milliseconds to wait. */
export const takeScript = defineScript({
  SCRIPT: `local ofAccount = tonumber(ARGV[7])
local begun = redis.call('MGET', KEYS[3], KEYS[4])
local waitMs = 0
if tonumber(begun[1] or 0) >= tonumber(ARGV[6]) then waitMs = math.max(redis.call('PTTL', KEYS[3]), 1) end
if ofAccount > 0 and tonumber(begun[2] or 0) >= ofAccount then
  waitMs = math.max(redis.call('PTTL', KEYS[4]), waitMs, 1)
end
if waitMs > 0 then return waitMs end
${nowMs}
${dropEnded}
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return -1 end
if redis.call('INCR', KEYS[3]) == 1 then redis.call('PEXPIRE', KEYS[3], ARGV[5]) end
if ofAccount > 0 and redis.call('INCR', KEYS[4]) == 1 then redis.call('PEXPIRE', KEYS[4], ARGV[5]) end
${hold}`,
  NUMBER_OF_KEYS: 4,
  parseCommand(parser: CommandParser, question: LeaseQuestion) {
    const { request, limits, windowMs } = question;
    const { account, bucket } = request;
    pushLeaseKeys(parser, request);
    parser.pushKey(windowKey(request));
    parser.pushKey(accountWindowKey(account ?? bucket));
    const ofAccount = account === undefined ? 0 : (limits.accountPerMinute ?? 0);
    pushLease(parser, question);
    parser.push(`${windowMs}`, `${perMinuteOf(request, limits)}`, `${ofAccount}`);
  },
  transformReply: readAnswer,
});

/** Joins a request in flight, or takes a place for it. Replies as `take` does. */
export const enterScript = defineScript({
  SCRIPT: `${nowMs}
${dropEnded}
if not redis.call('ZSCORE', KEYS[1], ARGV[3]) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return -1 end
${hold}`,
  NUMBER_OF_KEYS: 2,
  parseCommand(parser: CommandParser, question: LeaseQuestion) {
    pushLeaseKeys(parser, question.request);
    pushLease(parser, question);
  },
  transformReply: readAnswer,
});

/** Ends a lease; the request is in flight no more when nobody else has one on it. */
export const giveScript = defineScript({
  SCRIPT: `redis.call('ZREM', KEYS[2], ARGV[1] .. ' ' .. ARGV[2])
if not redis.call('ZSCORE', KEYS[2], ARGV[1] .. ' ' .. ARGV[3]) then redis.call('ZREM', KEYS[1], ARGV[1]) end
return 0`,
  NUMBER_OF_KEYS: 2,
  parseCommand(parser: CommandParser, { request, id, holder }: Lease) {
    pushLeaseKeys(parser, request);
    parser.push(id, holder, holder === "admitted" ? "entered" : "admitted");
  },
  transformReply: (reply: number) => reply,
});

/** Lets leases of one bucket last `leaseMs` from now, also those that Redis does not know. */
export const renewScript = defineScript({
  SCRIPT: `${nowMs}
${dropEnded}
for i = 2, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[i])
  redis.call('ZADD', KEYS[2], now + ARGV[1], ARGV[i] .. ' ' .. ARGV[i + 1])
end
${expireLeases("ARGV[1]")}
return 0`,
  NUMBER_OF_KEYS: 2,
  parseCommand(parser: CommandParser, counted: Counted, leases: readonly Lease[], leaseMs: number) {
    pushLeaseKeys(parser, counted);
    parser.push(`${leaseMs}`, ...leases.flatMap(({ id, holder }) => [id, holder]));
  },
  transformReply: (reply: number) => reply,
});

/** What is known of a window. */
export interface WindowState {
  readonly begun: number;
  readonly leftMs: number;
}

/** Counts requests of a window that were admitted elsewhere; it lasts `leftMs` when there is none. Replies how it is. */
export const oweScript = defineScript({
  SCRIPT: `local begun = redis.call('INCRBY', KEYS[1], ARGV[1])
if begun == tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {begun, redis.call('PTTL', KEYS[1])}`,
  NUMBER_OF_KEYS: 1,
  parseCommand(parser: CommandParser, key: string, count: number, leftMs: number) {
    parser.pushKey(key);
    parser.push(`${count}`, `${leftMs}`);
  },
  transformReply: ([begun = 0, leftMs = 0]: readonly number[]): WindowState => ({ begun, leftMs }),
});
