import { expect, onTestFinished, test } from "vitest";
import { parsePrometheusText, type Series, sumOf } from "../../test/support/prometheus-text.ts";
import { readConfig } from "../runtime/config.ts";
import { silentLog } from "../runtime/log.ts";
import { Metrics } from "../telemetry/metrics.ts";
import { measureLimiter } from "./limit-metrics.ts";
import type { RequestLimiter } from "./limiter.ts";
import { LocalLimiter } from "./local-limiter.ts";
import { openRequestLimiter, rateLimitSpec } from "./open-request-limiter.ts";

const refusals = "media_gateway_rate_limit_refusals_total";

function measured(limiter: RequestLimiter) {
  const metrics = new Metrics({ log: silentLog });
  const read = async (): Promise<readonly Series[]> => parsePrometheusText(await metrics.scrape());
  return { limiter: measureLimiter(metrics, limiter), read };
}

test("refusals are counted by reason, from nought on, and pass through with all else", async () => {
  const { limiter, read } = measured(new LocalLimiter({ limits: { perMinute: 3, maxInFlight: 1 } }));
  const count = async () => {
    const series = await read();
    return ["rate_limited", "too_many_in_flight"].map((reason) => sumOf(series, refusals, { reason }));
  };
  const request = { bucket: "a" };
  expect((await read()).filter(({ name }) => name === refusals)).toHaveLength(2);

  const first = await limiter.admit(request);
  await expect(limiter.admit(request)).rejects.toThrow("too many at once");
  expect(await count()).toEqual([0, 1]);
  first.release();
  for (let time = 0; time < 2; time++) (await limiter.admit(request)).release();
  await expect(limiter.admit(request)).rejects.toThrow("too many requests a minute");
  expect(await count()).toEqual([1, 1]);

  await expect(limiter.admit({ bucket: "b" }, AbortSignal.abort())).rejects.toThrow("went away");
  expect(await count()).toEqual([1, 1]);
});

test("a Redis that is away is exported, and nothing where there is none", async () => {
  const config = readConfig(rateLimitSpec, {});
  const away = await openRequestLimiter({ ...config, REDIS_URL: "redis://127.0.0.1:9" }, silentLog);
  onTestFinished(() => away.close());
  const local = await openRequestLimiter({ ...config, REDIS_URL: undefined }, silentLog);
  const exported = async (limiter: RequestLimiter) =>
    (await measured(limiter).read()).filter(({ name }) => name === "media_gateway_redis_away");
  expect((await exported(away)).map(({ value }) => value)).toEqual([1]);
  expect(await exported(local)).toEqual([]);
});
