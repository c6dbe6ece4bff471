import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError, readConfig } from "../runtime/config.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { LoopDelay } from "../runtime/loop-delay.ts";
import { Metrics } from "./metrics.ts";
import { listenForMetrics, metricsSpec } from "./metrics-listener.ts";
import { openMetrics } from "./metrics-process.ts";

const host = "127.0.0.1";

async function open(metrics = new Metrics({ log: silentLog }), port = 0) {
  const listener = await listenForMetrics({ host, port, metrics, log: silentLog });
  onTestFinished(() => listener.close());
  return { ...listener, url: `http://${host}:${listener.port}` };
}

test("serves the metrics of the process and nothing else", async () => {
  const { url } = await open(openMetrics(silentLog));
  const response = await fetch(`${url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  const text = await response.text();
  for (const name of [
    "process_cpu_seconds_total",
    "process_start_time_seconds",
    "process_resident_memory_bytes",
    "nodejs_heap_size_used_bytes",
    "nodejs_external_memory_bytes",
    "nodejs_eventloop_lag_p50_seconds",
    "nodejs_eventloop_lag_p99_seconds",
    "nodejs_eventloop_lag_max_seconds",
    "nodejs_eventloop_utilization_ratio",
  ]) {
    expect(text).toMatch(new RegExp(`^${name} \\d`, "m"));
  }
  for (const [path, method] of [
    ["/", "GET"],
    ["/metrics?x=1", "GET"],
    ["/metrics", "POST"],
    ["/metrics/", "GET"],
  ] as const)
    expect((await fetch(url + path, { method })).status, path).toBe(404);
});

test("sees how late the event loop comes to its work while a request runs", async () => {
  const loopDelay = new LoopDelay();
  const metrics = openMetrics(silentLog, loopDelay);
  const { url } = await open(metrics);
  const worstMs = async () => {
    const text = await (await fetch(`${url}/metrics`)).text();
    return Number(/^nodejs_eventloop_lag_max_seconds (.+)$/m.exec(text)?.[1]) * 1000;
  };
  const afterBusyMs = () => {
    const untilMs = performance.now() + 200;
    while (performance.now() < untilMs);
    return worstMs();
  };
  expect(await afterBusyMs()).toBe(0);
  loopDelay.begin();
  await expect.poll(afterBusyMs).toBeGreaterThan(100);
  await expect.poll(worstMs).toBeLessThan(100);
  loopDelay.end();
  await worstMs();
  expect(await afterBusyMs()).toBe(0);
});

test("is closed with connections that are kept alive, and then refuses", async () => {
  const { url, port = 0, close } = await open();
  await (await fetch(`${url}/metrics`)).text();
  await close();
  const refused = await new Promise<NodeJS.ErrnoException>((resolve) =>
    connect({ host, port }).on("error", resolve),
  );
  expect(refused.code).toBe("ECONNREFUSED");
});

test("opens nothing when it is off", async () => {
  const listener = await listenForMetrics({
    host,
    port: "off",
    metrics: new Metrics({ log: silentLog }),
    log: silentLog,
  });
  expect(listener.port).toBeUndefined();
  await listener.close();
});

test("a port that is taken is an error on the log, and the process goes on", async () => {
  const { port = 0 } = await open();
  const lines: string[] = [];
  const log = createLog({
    name: "sample",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  const second = await listenForMetrics({ host, port, metrics: new Metrics({ log }), log });
  expect(second.port).toBeUndefined();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain("METRICS_PORT");
  await second.close();
});

const portOf = (text: string | undefined) => readConfig(metricsSpec, { METRICS_PORT: text }).METRICS_PORT;

test("the port of metrics is 9464 unless another one is given, or none", () => {
  expect(portOf(undefined)).toBe(9464);
  expect(portOf("")).toBe(9464);
  expect(portOf("0")).toBe(0);
  expect(portOf("19464")).toBe(19464);
  expect(portOf("off")).toBe("off");
});

test.for(["65536", "-1", "none", "9464.5", "false", "0x10"])("%s is no port", (text) => {
  expect(() => portOf(text)).toThrow(ConfigError);
  expect(() => portOf(text)).toThrow("METRICS_PORT must be off or a whole number from 0 to 65535");
});
