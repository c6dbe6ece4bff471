import { measureLimiter, watchLoad } from "../rate-limit/limit-metrics.ts";
import type { RequestLimiter } from "../rate-limit/limiter.ts";
import { LoadShedder, type loadSpec } from "../rate-limit/load-shedder.ts";
import { openRequestLimiter, type rateLimitSpec } from "../rate-limit/open-request-limiter.ts";
import type { ConfigOf } from "../runtime/config.ts";
import type { Host } from "./host.ts";

/** What decides how much a process takes on. */
export interface ProcessLimits {
  readonly limiter: RequestLimiter;
  readonly shedder: LoadShedder;
}

/** The limits of a process, measured; Redis may be away. */
export async function openLimits(
  { log, metrics, loopDelay, onStop }: Host,
  config: ConfigOf<typeof rateLimitSpec & typeof loadSpec>,
): Promise<ProcessLimits> {
  const limiter = measureLimiter(metrics, await openRequestLimiter(config, log));
  onStop(() => limiter.close());
  const { MAX_INFLIGHT_REQUESTS: maxInFlight, MAX_LOOP_DELAY_MS: maxDelayMs } = config;
  const shedder = new LoadShedder({ maxInFlight, maxDelayMs, loopDelay });
  watchLoad(metrics, shedder);
  return { limiter, shedder };
}
