import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { startChild } from "../../test/support/processes/child.ts";
import {
  type RedisServer,
  redisIsInstalled,
  requireRedis,
  startRedis,
} from "../../test/support/processes/redis-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { silentLog } from "../runtime/log.ts";
import { admitAtOnce, describeRequestLimiter, refusalOf } from "./limiter.suite.ts";
import type { RequestLimiter } from "./limiter.ts";
import { RedisLimiter, type RedisLimiterOptions } from "./redis-limiter.ts";
import { holdersKey, leasesKey } from "./redis-scripts.ts";

const many = 1_000_000;
let redis: RedisServer | undefined;

beforeAll(async () => {
  if (redisIsInstalled()) redis = await startRedis();
});

beforeEach(requireRedis);

afterAll(() => redis?.[Symbol.asyncDispose]());

function theRedis(): RedisServer {
  if (redis === undefined) throw new Error("redis did not start");
  return redis;
}

function newBucket(): string {
  return randomBytes(32).toString("hex");
}

function open(limits: Partial<RedisLimiterOptions["limits"]>, options: Partial<RedisLimiterOptions> = {}) {
  const { url } = theRedis();
  return RedisLimiter.open({
    url,
    limits: { perMinute: many, maxInFlight: many, ...limits },
    log: silentLog,
    // However busy the machine is, it is Redis that decides here.
    answerTimeoutMs: 20_000,
    ...options,
  });
}

async function close(...limiters: readonly RequestLimiter[]): Promise<void> {
  for (const limiter of limiters) await limiter.close();
}

async function leases(bucket: string): Promise<string[]> {
  return (await theRedis().command("ZRANGE", leasesKey({ bucket }), "0", "-1")) as string[];
}

describe("with Redis", () => {
  describeRequestLimiter(async (limits, windowMs) => {
    await theRedis().command("FLUSHALL");
    return open(limits, windowMs === undefined ? {} : { windowMs });
  });
});

describe("two processes that share a Redis", () => {
  test("admit exactly as many a minute as one may", async () => {
    const limiters = await Promise.all([open({ perMinute: 600 }), open({ perMinute: 600 })]);
    const { admissions, refusals } = await admitAtOnce(limiters, 1000, { bucket: newBucket() });
    expect(admissions.length).toBe(600);
    expect(new Set(refusals.map(({ reason }) => reason))).toEqual(new Set([ErrorReason.RATE_LIMITED]));
    await close(...limiters);
  });

  test("let exactly as many run at once as one may, and either takes what the other gives back", async () => {
    const bucket = newBucket();
    const limiters = await Promise.all([open({ maxInFlight: 64 }), open({ maxInFlight: 64 })]);
    const [, second] = limiters;
    const { admissions } = await admitAtOnce(limiters, 200, { bucket });
    expect(admissions.length).toBe(64);
    expect((await refusalOf(second.admit({ bucket }))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    for (const { release } of admissions) release();
    await waitUntil(async () => (await leases(bucket)).length === 0);
    expect((await admitAtOnce([second], 100, { bucket })).admissions.length).toBe(64);
    await close(...limiters);
  });

  test("never let more run while requests come and end", async () => {
    const bucket = newBucket();
    const limiters = await Promise.all([open({ maxInFlight: 5 }), open({ maxInFlight: 5 })]);
    let running = 0;
    let most = 0;
    let admitted = 0;
    const client = async (limiter: RequestLimiter) => {
      for (let turn = 0; turn < 50; turn += 1) {
        const admission = await limiter.admit({ bucket }).catch(() => undefined);
        if (admission === undefined) continue;
        admitted += 1;
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
        admission.release();
      }
    };
    await Promise.all(
      Array.from({ length: 16 }, (_, index) => client(limiters[index % 2] as RequestLimiter)),
    );
    expect(most).toBe(5);
    expect(admitted).toBeGreaterThan(100);
    await waitUntil(async () => (await leases(bucket)).length === 0);
    await close(...limiters);
  });

  test("give back what ended just before one of them stopped", async () => {
    const bucket = newBucket();
    const limiter = await open({});
    const { admissions } = await admitAtOnce([limiter], 10, { bucket });
    for (const { release } of admissions) release();
    await limiter.close();
    expect(await leases(bucket)).toEqual([]);
  });

  test("leave nothing in Redis that would stay there", async () => {
    const bucket = newBucket();
    const limiter = await open({});
    await limiter.admit({ bucket });
    const keys = (await theRedis().command("KEYS", `media:rate:*`)) as string[];
    expect(keys).toContain(leasesKey({ bucket }));
    for (const key of keys) {
      const leftMs = await theRedis().command("PTTL", key);
      expect(leftMs).not.toBe(-1);
      expect(leftMs).toBeLessThanOrEqual(60_000);
    }
    await limiter.close();
  });
});

describe("a request that goes on in another process", () => {
  test("is one in flight for all of them, until both have let go", async () => {
    const request = { bucket: newBucket(), account: "x" };
    const [gateway, service] = await Promise.all([open({ maxInFlight: 1 }), open({ maxInFlight: 1 })]);
    const admitted = await gateway.admit(request);
    const entered = await service.enter(request, admitted.id);
    const inFlight = () => theRedis().command("ZCARD", leasesKey(request));
    expect(await inFlight()).toBe(1);
    admitted.release();
    for (const limiter of [gateway, service])
      expect((await refusalOf(limiter.admit(request))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    entered.release();
    await waitUntil(async () => (await inFlight()) === 0);
    await gateway.admit(request);
    await close(gateway, service);
  });

  test.for([["where it was admitted"], ["where it went on"]] as const)(
    "stays when the process dies %s, and ends with the other one",
    async ([dies]) => {
      const request = { bucket: newBucket() };
      const options = { leaseMs: 900 };
      const gateway = await open({ maxInFlight: 1 }, options);
      const service = await open({ maxInFlight: 1 }, options);
      const admitted = await gateway.admit(request);
      const entered = await service.enter(request, admitted.id);
      const atGateway = dies === "where it was admitted";
      // It gives nothing back and renews nothing, as one that was killed.
      await close(atGateway ? gateway : service);
      const holders = () => theRedis().command("ZCARD", holdersKey(request));
      await waitUntil(async () => (await holders()) === 1);
      const other = atGateway ? service : gateway;
      expect((await refusalOf(other.admit(request))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
      (atGateway ? entered : admitted).release();
      await waitUntil(() => other.admit(request));
      await close(other);
    },
  );
});

describe("what is in flight", () => {
  test("counts as long as it runs, however long that is", async () => {
    const bucket = newBucket();
    const leaseMs = 200;
    const limiter = await open({ maxInFlight: 1 }, { leaseMs });
    await limiter.admit({ bucket });
    const [lease = ""] = await leases(bucket);
    const ends = async () => Number(await theRedis().command("ZSCORE", leasesKey({ bucket }), lease));
    const firstMs = await ends();
    await waitUntil(async () => (await ends()) > firstMs + 3 * leaseMs);
    expect((await refusalOf(limiter.admit({ bucket }))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    await limiter.close();
  });

  test("counts no more some time after its process was killed", async () => {
    const bucket = newBucket();
    const { url } = theRedis();
    const env = { REDIS_URL: url, BUCKET: bucket, COUNT: "3", LEASE_MS: "1500" };
    const holder = startChild("test/support/services/lease-holder.ts", { env });
    await holder.line((line) => line.includes("holding"));
    const limiter = await open({ maxInFlight: 4 });
    await limiter.admit({ bucket });
    expect((await refusalOf(limiter.admit({ bucket }))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    await holder.kill();
    expect(await leases(bucket)).toHaveLength(4);
    for (const _ of [1, 2, 3]) await waitUntil(() => limiter.admit({ bucket }));
    expect((await refusalOf(limiter.admit({ bucket }))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    expect(await leases(bucket)).toHaveLength(4);
    await limiter.close();
  });
});
