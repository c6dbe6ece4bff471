import { describe, expect, test } from "vitest";
import { type RedisServer, requireRedis, startRedis } from "../../test/support/processes/redis-server.ts";
import { readConfig } from "../runtime/config.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { admitAtOnce } from "./limiter.suite.ts";
import { openRequestLimiter, rateLimitSpec, requestLimits } from "./open-request-limiter.ts";

const bucket = "ab".repeat(32);

describe("the environment of request limits", () => {
  test("needs nothing", () => {
    expect(readConfig(rateLimitSpec, {})).toEqual({
      RATE_LIMIT_PER_MINUTE: 600,
      MAX_RATE_LIMIT_PER_MINUTE: undefined,
      ACCOUNT_RATE_LIMIT_PER_MINUTE: undefined,
      MAX_INFLIGHT_PER_KEY: 64,
      REDIS_URL: undefined,
    });
  });

  test.for([
    ["RATE_LIMIT_PER_MINUTE", "0"],
    ["RATE_LIMIT_PER_MINUTE", "1.5"],
    ["MAX_RATE_LIMIT_PER_MINUTE", "0"],
    ["ACCOUNT_RATE_LIMIT_PER_MINUTE", "many"],
    ["MAX_INFLIGHT_PER_KEY", "0"],
    ["REDIS_URL", "http://someone:a-secret@redis.test"],
    ["REDIS_URL", "redis://someone:a-secret@redis.test/a-name"],
    ["REDIS_URL", "redis.test:6379"],
  ])("refuses %s=%s by the name of the variable alone", ([name = "", value = ""]) => {
    const read = () => readConfig(rateLimitSpec, { [name]: value });
    expect(read).toThrow(new RegExp(`^configuration: ${name} must be `));
    expect(read).not.toThrow("a-secret");
  });

  test.for(["redis://redis.test", "redis://u:p@redis.test:6380/3", "rediss://redis.test/"])(
    "takes %s",
    (REDIS_URL) => {
      expect(readConfig(rateLimitSpec, { REDIS_URL }).REDIS_URL).toBe(REDIS_URL);
    },
  );
});

describe("the ceilings", () => {
  const limits = (env: NodeJS.ProcessEnv) => requestLimits(readConfig(rateLimitSpec, env));

  test("are ten times what a key has, for a key and for an account, unless the operator says else", () => {
    expect(limits({})).toMatchObject({ perMinute: 600, maxPerMinute: 6000, accountPerMinute: 6000 });
    const env = { MAX_RATE_LIMIT_PER_MINUTE: "700", ACCOUNT_RATE_LIMIT_PER_MINUTE: "800" };
    expect(limits(env)).toMatchObject({ perMinute: 600, maxPerMinute: 700, accountPerMinute: 800 });
  });
});

describe("a limiter by the environment", () => {
  test("limits within the process without Redis", async () => {
    const config = readConfig(rateLimitSpec, { RATE_LIMIT_PER_MINUTE: "5", MAX_INFLIGHT_PER_KEY: "3" });
    const limiters = [
      await openRequestLimiter(config, silentLog),
      await openRequestLimiter(config, silentLog),
    ];
    expect((await admitAtOnce(limiters, 20, { bucket })).admissions.length).toBe(6);
  });

  test("limits over all processes with it", async (context) => {
    requireRedis(context);
    await using redis: RedisServer = await startRedis();
    const config = readConfig(rateLimitSpec, { MAX_INFLIGHT_PER_KEY: "3", REDIS_URL: `${redis.url}/2` });
    const limiters = [
      await openRequestLimiter(config, silentLog),
      await openRequestLimiter(config, silentLog),
    ];
    expect((await admitAtOnce(limiters, 20, { bucket })).admissions.length).toBe(3);
    for (const limiter of limiters) await limiter.close();
  });

  test("starts when Redis is not there, and says so", async () => {
    const lines: string[] = [];
    const log = createLog({
      name: "test",
      level: "info",
      destination: { write: (line) => void lines.push(line) },
    });
    const config = readConfig(rateLimitSpec, { REDIS_URL: "redis://127.0.0.1:1" });
    const limiter = await openRequestLimiter(config, log);
    await limiter.admit({ bucket });
    await limiter.close();
    expect(lines).toEqual([expect.stringContaining("redis is away")]);
  });
});
