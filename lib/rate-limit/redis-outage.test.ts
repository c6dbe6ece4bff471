import { beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { type RedisServer, requireRedis, startRedis } from "../../test/support/processes/redis-server.ts";
import { type StallingProxy, startStallingProxy } from "../../test/support/stalling-proxy.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog } from "../runtime/log.ts";
import { admitAtOnce, refusalOf } from "./limiter.suite.ts";
import type { RequestLimiter } from "./limiter.ts";
import { RedisLimiter, type RedisLimiterOptions } from "./redis-limiter.ts";
import { leasesKey, windowKey } from "./redis-scripts.ts";

const many = 1_000_000;
const away = "redis is away: requests are limited in this process alone";
const back = "redis is back: requests are limited over all processes";
const bucket = "ab".repeat(32);
/** For what hangs: long enough for a Redis that does not, on a busy machine. */
const hanging = { answerTimeoutMs: 500 };

beforeEach(requireRedis);

interface Setting extends AsyncDisposable {
  readonly redis: RedisServer;
  readonly limiter: RedisLimiter;
  /** Messages and causes of the lines that were logged. */
  logged(): readonly string[];
  text(): string;
  leases(): Promise<number>;
}

/** A limiter on a Redis of its own, which a test may harm. */
async function start(
  options: Omit<Partial<RedisLimiterOptions>, "limits"> & { limits?: Partial<RedisLimiterOptions["limits"]> },
  { running = true, login = "" } = {},
): Promise<Setting> {
  const redis = await startRedis();
  if (!running) await redis.kill();
  const lines: string[] = [];
  const log = createLog({
    name: "test",
    level: "info",
    destination: { write: (line) => void lines.push(line) },
  });
  const limiter = await RedisLimiter.open({
    url: redis.url.replace("//", `//${login}`),
    log,
    probeIntervalMs: 50,
    // Where nothing hangs, Redis may be as slow as a busy machine makes it.
    answerTimeoutMs: 20_000,
    ...options,
    limits: { perMinute: many, maxInFlight: many, ...options.limits },
  });
  return {
    redis,
    limiter,
    text: () => lines.join(""),
    logged: () =>
      lines.map((line) => {
        const { msg, cause } = JSON.parse(line) as { msg: string; cause?: string };
        return cause === undefined ? msg : `${msg} (${cause})`;
      }),
    leases: async () => Number(await redis.command("ZCARD", leasesKey({ bucket }))),
    async [Symbol.asyncDispose]() {
      await limiter.close();
      await redis[Symbol.asyncDispose]();
    },
  };
}

/** Whether a request is decided without a wait: before anything from outside could be heard. */
async function isDecidedAtOnce(limiter: RequestLimiter): Promise<boolean> {
  const turn = new Promise<boolean>((resolve) => setImmediate(resolve, false));
  const decided = limiter.admit({ bucket }).then(
    () => true,
    () => true,
  );
  return Promise.race([decided, turn]);
}

describe("a Redis that is killed", () => {
  test("leaves the limits of this process, at no wait and with one line", async () => {
    await using setting = await start({ limits: { perMinute: 10, maxInFlight: 8 } });
    const { redis, limiter, logged } = setting;
    const before = await limiter.admit({ bucket });
    await redis.kill();
    const { admissions } = await admitAtOnce([limiter], 50, { bucket });
    // Together with the one that Redis has admitted.
    expect(admissions.length).toBe(7);
    expect((await refusalOf(limiter.admit({ bucket }))).reason).toBe(ErrorReason.TOO_MANY_IN_FLIGHT);
    before.release();
    for (const { release } of admissions) release();
    expect((await admitAtOnce([limiter], 50, { bucket })).admissions.length).toBe(2);
    expect((await refusalOf(limiter.admit({ bucket }))).reason).toBe(ErrorReason.RATE_LIMITED);
    expect(await isDecidedAtOnce(limiter)).toBe(true);
    expect(logged()).toEqual([expect.stringMatching(/^redis is away: .* \(\w+\)$/)]);
  });

  test("is used again once it is back, and learns what is in flight", async () => {
    await using setting = await start({ limits: { maxInFlight: 10 } });
    const { redis, limiter, logged, leases } = setting;
    const before = await admitAtOnce([limiter], 3, { bucket });
    await redis.kill();
    const during = await admitAtOnce([limiter], 4, { bucket });
    expect(during.admissions.length).toBe(4);
    await redis.restart();
    await waitUntil(async () => (await leases()) === 7);
    expect(logged()).toEqual([expect.stringContaining(away), back]);
    const second = await RedisLimiter.open({
      url: redis.url,
      limits: { perMinute: many, maxInFlight: 10 },
      log: createLog({ name: "test", level: "silent" }),
    });
    expect((await admitAtOnce([limiter, second], 20, { bucket })).admissions.length).toBe(3);
    for (const { release } of [...before.admissions, ...during.admissions]) release();
    await waitUntil(async () => (await leases()) === 3);
    await second.close();
  });

  test("is missed once for every time that it goes", async () => {
    await using setting = await start({});
    const { redis, limiter, logged } = setting;
    for (const round of [1, 2]) {
      await redis.kill();
      await admitAtOnce([limiter], 20, { bucket });
      await redis.restart();
      await waitUntil(() => logged().length === 2 * round);
    }
    expect(logged().map((line) => line.replace(/ \(.*/, ""))).toEqual([away, back, away, back]);
  });
});

describe("a Redis that hangs", () => {
  test("holds no request back, and none waits once that is known", async () => {
    await using setting = await start({ ...hanging, limits: { maxInFlight: 64 }, probeTimeoutMs: 600 });
    const { redis, limiter, logged } = setting;
    await limiter.admit({ bucket });
    redis.pause();
    // It never answers, so every one of these would wait for ever if it waited for Redis.
    expect((await admitAtOnce([limiter], 100, { bucket })).admissions.length).toBe(63);
    expect(await isDecidedAtOnce(limiter)).toBe(true);
    expect(logged()).toEqual([`${away} (slow)`]);
    redis.resume();
    await waitUntil(() => logged().length === 2);
    await waitUntil(async () => (await setting.leases()) === 64);
    expect(logged()).toEqual([`${away} (slow)`, back]);
  });

  test("keeps no lease of a request that ended or was refused meanwhile", async () => {
    await using setting = await start({ ...hanging, limits: { maxInFlight: 5 }, probeTimeoutMs: 60_000 });
    const { redis, limiter, logged, leases } = setting;
    const before = await admitAtOnce([limiter], 4, { bucket });
    // Redis forgets these, so that it has room where this process has none.
    await redis.command("FLUSHALL");
    redis.pause();
    const during = await admitAtOnce([limiter], 5, { bucket });
    expect([during.admissions.length, during.refusals.length]).toEqual([1, 4]);
    before.admissions[0]?.release();
    redis.resume();
    await waitUntil(() => logged().length === 2);
    await waitUntil(async () => (await leases()) === 4);
    for (const { release } of [...before.admissions, ...during.admissions]) release();
    await waitUntil(async () => (await leases()) === 0);
  });

  test("is reached over a new connection when only the old one is dead", async () => {
    await using redis = await startRedis();
    await using proxy = await startStallingProxy(Number(new URL(redis.url).port));
    await using setting = await start({
      ...hanging,
      probeTimeoutMs: 600,
      url: `redis://127.0.0.1:${proxy.port}`,
    });
    const { limiter, logged } = setting;
    await limiter.admit({ bucket });
    proxy.stall();
    await limiter.admit({ bucket });
    await waitUntil(() => logged().length === 2);
    expect(logged()).toEqual([`${away} (slow)`, back]);
    await waitUntil(async () => Number(await redis.command("ZCARD", leasesKey({ bucket }))) === 2);
  });

  test("lets a caller leave while the request waits, and counts it no more", async () => {
    await using setting = await start({ ...hanging, limits: { maxInFlight: 1 } });
    const { redis, limiter, leases } = setting;
    redis.pause();
    const leaving = new AbortController();
    const refusal = refusalOf(limiter.admit({ bucket }, leaving.signal));
    leaving.abort();
    expect((await refusal).reason).toBe(ErrorReason.CANCELLED);
    await limiter.admit({ bucket });
    redis.resume();
    await waitUntil(async () => (await leases()) === 1);
  });
});

describe("a Redis that is slow", () => {
  const slow = { answerTimeoutMs: 150, probeTimeoutMs: 20_000 };

  async function startBehindProxy(proxy: StallingProxy, limits: { perMinute: number }) {
    return start({ ...slow, url: `redis://127.0.0.1:${proxy.port}`, limits });
  }

  test("learns what was admitted alone, so that it counts when Redis is back", async () => {
    await using redis = await startRedis();
    await using proxy = await startStallingProxy(Number(new URL(redis.url).port));
    const limits = { perMinute: 10 };
    await using first = await startBehindProxy(proxy, limits);
    await using second = await start({ ...slow, answerTimeoutMs: 20_000, url: redis.url, limits });
    const request = { bucket, account: "x" };
    proxy.delay(400);
    expect((await admitAtOnce([first.limiter], 6, request)).admissions.length).toBe(6);
    proxy.delay(0);
    await waitUntil(() => first.logged().includes(back));
    expect((await admitAtOnce([second.limiter], 20, request)).admissions.length).toBe(4);
    expect((await refusalOf(first.limiter.admit(request))).reason).toBe(ErrorReason.RATE_LIMITED);
    expect(Number(await redis.command("GET", windowKey(request)))).toBe(10);
    expect(first.limiter.sharing).toMatchObject({ away: false, left: { slow: 1, failed: 0 } });
    expect(first.limiter.sharing.decidedAlone).toBeGreaterThanOrEqual(6);
  });

  test("shares with each process what the others admit, while it stays slow", async () => {
    await using redis = await startRedis();
    await using proxy = await startStallingProxy(Number(new URL(redis.url).port));
    const limits = { perMinute: 10 };
    await using first = await startBehindProxy(proxy, limits);
    await using second = await startBehindProxy(proxy, limits);
    proxy.delay(400);
    const both = [first.limiter, second.limiter];
    const { admissions } = await admitAtOnce(both, 20, { bucket });
    expect(admissions.length).toBe(20);
    // Beyond the limit already: neither has room once each knows of the other, and Redis none when it is back.
    await waitUntil(async () => Number(await redis.command("GET", windowKey({ bucket }))) === 20);
    proxy.delay(0);
    await waitUntil(() => [first, second].every((setting) => setting.logged().includes(back)));
    expect((await admitAtOnce(both, 20, { bucket })).admissions.length).toBe(0);
  });

  test("that refuses too late what was let in counts it, and so does this process", async () => {
    await using redis = await startRedis();
    await using proxy = await startStallingProxy(Number(new URL(redis.url).port));
    const limits = { perMinute: 10 };
    await using first = await startBehindProxy(proxy, limits);
    await using second = await start({ ...slow, answerTimeoutMs: 20_000, url: redis.url, limits });
    await admitAtOnce([second.limiter], 10, { bucket });
    proxy.delay(400);
    expect((await admitAtOnce([first.limiter], 3, { bucket })).admissions.length).toBe(3);
    await waitUntil(async () => Number(await redis.command("GET", windowKey({ bucket }))) === 13);
    const isRefused = () =>
      first.limiter.admit({ bucket }).then(
        () => false,
        () => true,
      );
    await waitUntil(isRefused);
    expect(first.limiter.sharing.away).toBe(true);
  });
});

describe("a Redis that can't be used", () => {
  test("because it is not there yet is used from when it is", async () => {
    await using setting = await start({ limits: { maxInFlight: 2 } }, { running: false });
    const { redis, limiter, logged } = setting;
    expect(logged()).toEqual([`${away} (ECONNREFUSED)`]);
    expect((await admitAtOnce([limiter], 5, { bucket })).admissions.length).toBe(2);
    await redis.restart();
    await waitUntil(() => logged().length === 2);
    await waitUntil(async () => (await setting.leases()) === 2);
  });

  test("because it refuses the login is named without a secret", async () => {
    await using setting = await start({}, { login: "someone:a-secret@" });
    expect(await isDecidedAtOnce(setting.limiter)).toBe(true);
    expect(setting.logged()).toEqual([`${away} (WRONGPASS)`]);
    expect(setting.text()).not.toMatch(/a-secret|someone|127\.0\.0\.1/);
  });

  test("because it became a replica is used again when it is none", async () => {
    await using setting = await start({});
    const { redis, limiter, logged } = setting;
    await redis.command("REPLICAOF", "127.0.0.1", "1");
    expect((await admitAtOnce([limiter], 5, { bucket })).admissions.length).toBe(5);
    expect(logged()).toEqual([`${away} (READONLY)`]);
    await redis.command("REPLICAOF", "NO", "ONE");
    await waitUntil(() => logged().length === 2);
    await waitUntil(async () => (await setting.leases()) === 5);
  });

  test("because it forgot the scripts is none of these", async () => {
    await using setting = await start({});
    await setting.redis.command("SCRIPT", "FLUSH");
    expect((await admitAtOnce([setting.limiter], 5, { bucket })).admissions.length).toBe(5);
    expect(setting.logged()).toEqual([]);
    expect(await setting.leases()).toBe(5);
  });
});
