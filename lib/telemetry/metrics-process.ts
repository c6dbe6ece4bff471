import { performance } from "node:perf_hooks";
import type { Log } from "../runtime/log.ts";
import { type DelayStats, LoopDelay } from "../runtime/loop-delay.ts";
import { Metrics } from "./metrics.ts";

const nanosecondsPerSecond = 1e9;

/**
 * The metrics of a process, with those that every process has; once in a process. `loopDelay` is what its
 * servers notify of the requests that run.
 */
export function openMetrics(log: Log, loopDelay = new LoopDelay()): Metrics {
  const metrics = new Metrics({ log });
  watchProcess(metrics, loopDelay);
  return metrics;
}

/** The metrics that every process has, under the names that dashboards for Node processes know. */
function watchProcess(metrics: Metrics, loopDelay: LoopDelay): void {
  const startedS = Math.round(performance.timeOrigin) / 1000;
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.observe({ name, help, kind: "gauge", read });
  metrics.observe({
    name: "process_cpu_seconds_total",
    help: "Processor time used, user and system, seconds.",
    kind: "counter",
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
  gauge("process_start_time_seconds", "When the process began, Unix seconds.", () => startedS);
  gauge("process_resident_memory_bytes", "Memory that the process has, bytes.", () =>
    process.memoryUsage.rss(),
  );
  gauge(
    "nodejs_heap_size_used_bytes",
    "Heap of JavaScript in use, bytes.",
    () => process.memoryUsage().heapUsed,
  );
  gauge(
    "nodejs_external_memory_bytes",
    "Memory of buffers beside the heap, bytes.",
    () => process.memoryUsage().external,
  );
  watchEventLoop(metrics, loopDelay);
}

/** Delays since the metrics were asked for last; with two that ask, each sees what came after the other. */
function watchEventLoop(metrics: Metrics, loopDelay: LoopDelay): void {
  let stats: DelayStats = { p50: 0, p99: 0, max: 0 };
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.observe({ name, help, kind: "gauge", read: () => read() / nanosecondsPerSecond });
  // Read first, in the order of their making.
  gauge("nodejs_eventloop_lag_p50_seconds", lagHelp("half of the time"), () => {
    stats = loopDelay.takeStats();
    return stats.p50;
  });
  gauge("nodejs_eventloop_lag_p99_seconds", lagHelp("a hundredth of the time"), () => stats.p99);
  gauge("nodejs_eventloop_lag_max_seconds", lagHelp("once"), () => stats.max);
  let last = performance.eventLoopUtilization();
  metrics.observe({
    name: "nodejs_eventloop_utilization_ratio",
    help: "Share of the time since the last scrape that the event loop was busy, 0 to 1.",
    kind: "gauge",
    read: () => {
      const now = performance.eventLoopUtilization();
      const { utilization } = performance.eventLoopUtilization(now, last);
      last = now;
      return utilization;
    },
  });
}

function lagHelp(share: string): string {
  return `How late the event loop came to its work ${share} since the last scrape, as seen while requests ran, seconds.`;
}
