/**
 * What limiting costs a request: admitting it at the gateway, entering at the service, letting go at both; in this
 * process, and over a Redis of its own where `redis-server` is installed. `node bench/limits.ts`
 */

import type { RequestLimiter } from "../lib/rate-limit/limiter.ts";
import { LoadShedder } from "../lib/rate-limit/load-shedder.ts";
import { LocalLimiter } from "../lib/rate-limit/local-limiter.ts";
import { RedisLimiter } from "../lib/rate-limit/redis-limiter.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { LoopDelay } from "../lib/runtime/loop-delay.ts";
import { redisIsInstalled, startRedis } from "../test/support/processes/redis-server.ts";

const limits = { perMinute: 1e9, maxPerMinute: 1e9, accountPerMinute: 1e9, maxInFlight: 1000 };
const request = { bucket: "ab".repeat(32), account: "83739056-1a39-4557-b9bc-70e58837ba46" };
const rounds = 5;

async function measure(name: string, requests: number, run: () => Promise<void>): Promise<void> {
  const figures: { wallUs: number; cpuUs: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const startedMs = performance.now();
    const before = process.cpuUsage();
    for (let index = 0; index < requests; index += 1) await run();
    const { user, system } = process.cpuUsage(before);
    figures.push({
      wallUs: ((performance.now() - startedMs) * 1000) / requests,
      cpuUs: (user + system) / requests,
    });
  }
  const median = (of: (figure: (typeof figures)[number]) => number) =>
    figures
      .map(of)
      .sort((a, b) => a - b)
      [Math.floor(rounds / 2)]?.toFixed(1);
  console.log(`${name}: ${median(({ wallUs }) => wallUs)} µs, CPU ${median(({ cpuUs }) => cpuUs)} µs`);
}

async function measureLimiters(
  gateway: RequestLimiter,
  service: RequestLimiter,
  requests: number,
): Promise<void> {
  await measure("  admit and let go", requests, async () => (await gateway.admit(request)).release());
  await measure("  the same, and enter and let go at the service", requests, async () => {
    const admitted = await gateway.admit(request);
    const entered = await service.enter(request, admitted.id);
    entered.release();
    admitted.release();
  });
}

console.log("in this process");
const local = new LocalLimiter({ limits });
await measureLimiters(local, local, 200_000);
const shedder = new LoadShedder({ maxInFlight: 1000, maxDelayMs: 1e9, loopDelay: new LoopDelay() });
await measure("  carry", 200_000, async () => (await shedder.admit("one"))());
if (redisIsInstalled()) {
  console.log("over Redis, one at a time");
  await using redis = await startRedis();
  const open = () => RedisLimiter.open({ url: redis.url, limits, log: silentLog });
  const [gateway, service] = [await open(), await open()];
  await measureLimiters(gateway, service, 5000);
  await Promise.all([gateway.close(), service.close()]);
}
