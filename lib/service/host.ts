import { AddressLimiter, type addressLimitSpec } from "../rate-limit/address-limiter.ts";
import { watchStrangers } from "../rate-limit/limit-metrics.ts";
import type { ConfigOf, processSpec } from "../runtime/config.ts";
import { createLog, type Log } from "../runtime/log.ts";
import { LoopDelay } from "../runtime/loop-delay.ts";
import type { Tracer } from "../runtime/span.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { openMetrics } from "../telemetry/metrics-process.ts";
import { openTracing } from "../telemetry/tracing.ts";
import { runProcess } from "./process.ts";
import { Teardown } from "./teardown.ts";

/** What every process has. */
export interface Host {
  /** Of the process, in its log and its traces. */
  readonly name: string;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  /** To be notified of the requests that run. */
  readonly loopDelay: LoopDelay;
  /** Counts who comes without a good key. */
  readonly strangers: AddressLimiter;
  /** Adds the end of something that runs now: what was started last is ended first. */
  onStop(end: () => Promise<unknown>): void;
  /** Ends everything and the process with it, for a reason that has been logged. */
  fail(): Promise<never>;
}

type HostConfig = ConfigOf<typeof processSpec> & ConfigOf<typeof addressLimitSpec>;

interface HostedProcess<C extends HostConfig> {
  readonly name: string;
  /** Throws ConfigError. */
  readConfig(): C;
  /** Resolves once the process serves. When it rejects, what it has started is ended. */
  start(host: Host, config: C, signal: AbortSignal): Promise<void>;
}

/** Runs a process until it is told to stop: see runProcess. A part that can't be ended makes it exit with 1. */
export async function runHosted<C extends HostConfig>({
  name,
  readConfig,
  start,
}: HostedProcess<C>): Promise<void> {
  await runProcess(async (signal) => {
    const config = readConfig();
    const log = createLog({ name, level: config.LOG_LEVEL });
    const teardown = new Teardown(log);
    try {
      await start(await openHost(name, config, log, teardown), config, signal);
    } catch (thrown) {
      await teardown.run();
      throw thrown;
    }
    return {
      log,
      async stop() {
        if (!(await teardown.run())) throw new Error("not everything could be ended");
      },
    };
  });
}

async function openHost(name: string, config: HostConfig, log: Log, teardown: Teardown): Promise<Host> {
  const { tracer, close } = await openTracing(config, name, log);
  teardown.add(close);
  const loopDelay = new LoopDelay();
  const metrics = openMetrics(log, loopDelay);
  return {
    name,
    log,
    metrics,
    tracer,
    loopDelay,
    strangers: watchStrangers(metrics, new AddressLimiter(config)),
    onStop: (end) => teardown.add(end),
    async fail() {
      await teardown.run();
      process.exit(1);
    },
  };
}
