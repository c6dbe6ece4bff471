/* A process that holds requests in flight until it is killed: REDIS_URL, BUCKET, COUNT and LEASE_MS say which. */
import { RedisLimiter } from "../../../lib/rate-limit/redis-limiter.ts";
import { createLog } from "../../../lib/runtime/log.ts";

const { REDIS_URL: url = "", BUCKET: bucket = "", COUNT, LEASE_MS } = process.env;
const log = createLog({ name: "lease-holder", level: "info" });
const limits = { perMinute: 1_000_000, maxInFlight: 1_000_000 };
const limiter = await RedisLimiter.open({ url, limits, log, leaseMs: Number(LEASE_MS) });
for (let held = 0; held < Number(COUNT); held += 1) await limiter.admit({ bucket });
log.info("holding");
setInterval(() => undefined, 60_000);
