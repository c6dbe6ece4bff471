import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Log } from "../runtime/log.ts";
import { Metrics } from "./metrics.ts";

const nanosecondsPerSecond = 1e9;
/** How often the event loop is looked at, milliseconds; a delay is told beyond it. */
const resolutionMs = 10;

/** The metrics of a process, with the figures that every process has; once in a process. */
export function openMetrics(log: Log): Metrics {
  const metrics = new Metrics({ log });
  watchProcess(metrics);
  return metrics;
}

/** Figures that every process has, under the names that dashboards for Node processes know. */
function watchProcess(metrics: Metrics): void {
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
  watchEventLoop(metrics);
}

/** Delays since the metrics were asked for last; with two that ask, each sees what came after the other. */
function watchEventLoop(metrics: Metrics): void {
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.observe({
      name,
      help,
      kind: "gauge",
      read: () => (delays.count === 0 ? 0 : beyondResolution(read())),
    });
  gauge("nodejs_eventloop_lag_p50_seconds", lagHelp("half of the time"), () => delays.percentile(50));
  gauge("nodejs_eventloop_lag_p99_seconds", lagHelp("a hundredth of the time"), () => delays.percentile(99));
  metrics.observe({
    name: "nodejs_eventloop_lag_max_seconds",
    help: lagHelp("once"),
    kind: "gauge",
    read: () => {
      const worst = delays.count === 0 ? 0 : beyondResolution(delays.max);
      // Read after the others, in the order of their making.
      delays.reset();
      return worst;
    },
  });
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

function beyondResolution(nanoseconds: number): number {
  return Math.max(0, nanoseconds / nanosecondsPerSecond - resolutionMs / 1000);
}

function lagHelp(share: string): string {
  return `How late at least the event loop came to its work ${share} since the last scrape, seconds.`;
}
