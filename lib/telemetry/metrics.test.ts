import { expect, test, vi } from "vitest";
import { createLog, silentLog } from "../runtime/log.ts";
import { Metrics, type ObservedMetric } from "./metrics.ts";

const gauge = (name: string, read: ObservedMetric["read"]): ObservedMetric => ({
  name,
  help: "Help.",
  kind: "gauge",
  read,
});

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("counters, histograms and observed metrics are exported in Prometheus's format", async () => {
  const metrics = new Metrics({ log: silentLog });
  metrics.counter("sample_total", "Samples.").add(2, { kind: "a" });
  metrics.counter("sample_total", "Samples.").add(1, { kind: "a" });
  const histogram = metrics.histogram("sample_seconds", "How long.", [0.1, 1]);
  for (const value of [0.05, 0.5, 5]) histogram.record(value);
  metrics.observe(gauge("sample_depth", () => [{ value: 7, labels: { queue: 'a"\\b\nc' } }]));
  metrics.observe({ ...gauge("sample_done_total", () => 4), kind: "counter" });

  const text = await metrics.scrape();

  expect(text).toContain("# HELP sample_total Samples.\n# TYPE sample_total counter\n");
  expect(text).toContain("# TYPE sample_done_total counter\n");
  expect(linesOf(text)).toEqual(
    expect.arrayContaining([
      'sample_total{kind="a"} 3',
      'sample_seconds_bucket{le="0.1"} 1',
      'sample_seconds_bucket{le="1"} 2',
      'sample_seconds_bucket{le="+Inf"} 3',
      "sample_seconds_sum 5.55",
      "sample_seconds_count 3",
      'sample_depth{queue="a\\"\\\\b\\nc"} 7',
      "sample_done_total 4",
    ]),
  );
});

test("several observed metrics give values of one name", async () => {
  const metrics = new Metrics({ log: silentLog });
  for (const service of ["a", "b"])
    metrics.observe(gauge("sample_depth", () => [{ value: 1, labels: { service } }]));
  const text = await metrics.scrape();
  expect(linesOf(text)).toEqual(['sample_depth{service="a"} 1', 'sample_depth{service="b"} 1']);
  expect(text.match(/# TYPE sample_depth/g)).toHaveLength(1);
});

test("what can't be read is left out, also when it was exported before, and what can is exported", async () => {
  const metrics = new Metrics({ log: silentLog, readTimeoutMs: 50 });
  let fails = false;
  const failing = vi.fn(async () => {
    if (fails) throw new Error("away");
    return 5;
  });
  metrics.observe(gauge("sample_failing", failing));
  metrics.observe(gauge("sample_unknown", () => undefined));
  metrics.observe(gauge("sample_hanging", () => (fails ? new Promise(() => undefined) : 6)));
  metrics.observe(gauge("sample_well", () => 1));

  expect(linesOf(await metrics.scrape())).toEqual(["sample_failing 5", "sample_hanging 6", "sample_well 1"]);
  fails = true;
  expect(linesOf(await metrics.scrape())).toEqual(["sample_well 1"]);
  expect(failing).toHaveBeenCalledTimes(2);
  fails = false;
  expect(linesOf(await metrics.scrape())).toEqual(["sample_failing 5", "sample_hanging 6", "sample_well 1"]);
});

test("a gauge goes down and up as it is read", async () => {
  const metrics = new Metrics({ log: silentLog });
  const values = [5, 2, 9];
  metrics.observe(gauge("sample_depth", () => values.shift()));
  const told = [await metrics.scrape(), await metrics.scrape(), await metrics.scrape()];
  expect(told.flatMap(linesOf)).toEqual(["sample_depth 5", "sample_depth 2", "sample_depth 9"]);
});

test("series of one name are bounded, whatever labels come", async () => {
  const metrics = new Metrics({ log: silentLog, maxSeries: 10 });
  const counter = metrics.counter("sample_total", "Samples.");
  for (let index = 0; index < 1000; index++) counter.add(1, { key: `${index}` });
  const lines = linesOf(await metrics.scrape());
  expect(lines).toHaveLength(10);
  expect(lines).toContain('sample_total{otel_metric_overflow="true"} 991');
});

test("nothing that a read throws reaches the log above debug", async () => {
  const lines: string[] = [];
  const log = createLog({
    name: "sample",
    level: "info",
    destination: { write: (line) => lines.push(line) },
  });
  const metrics = new Metrics({ log });
  metrics.observe(
    gauge("sample_failing", () => {
      throw new Error("away");
    }),
  );
  expect(linesOf(await metrics.scrape())).toEqual([]);
  expect(lines).toEqual([]);
});
