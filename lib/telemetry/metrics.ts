/**
 * The metrics of a process, in the format that Prometheus reads.
 *
 * 1. What is counted while requests run costs a map look-up; all else is read when somebody asks for the metrics.
 * 2. A metric that can't be read in time is left out; the others are exported all the same.
 * 3. Labels come from closed sets: route patterns, codes, reasons, the catalogue. Beyond `maxSeries` of one name what
 *    is new is counted under one series that says so, however that came about.
 */
import type { ObservableCallback, ObservableResult } from "@opentelemetry/api";
import { PrometheusSerializer } from "@opentelemetry/exporter-prometheus";
import {
  AggregationTemporality,
  InstrumentType,
  MeterProvider,
  MetricReader,
} from "@opentelemetry/sdk-metrics";
import type { NodeRequest, NodeResponse } from "../rpc/port/port-listener.ts";
import type { Log } from "../runtime/log.ts";

/** Names and values that distinguish one series of a metric from the others. */
export type Labels = Readonly<Record<string, string>>;

/** One value of an observed metric. */
export interface Reading {
  readonly value: number;
  readonly labels?: Labels;
}

/** What is read when somebody asks for the metrics. */
export interface ObservedMetric {
  /** With its unit last, as Prometheus has it; counters end in `_total`. */
  readonly name: string;
  readonly help: string;
  /** A counter only grows while the process lives; a gauge is left out when it is not read. */
  readonly kind: "gauge" | "counter";
  /** The values now. What throws or takes too long has none. */
  read(): Readings | Promise<Readings>;
}

/** The values of one observed metric; none when undefined or empty. */
export type Readings = number | undefined | readonly Reading[];

/** Counts while the process works. */
export interface Counter {
  add(value: number, labels?: Labels): void;
}

/** Counts values by their size. */
export interface Histogram {
  record(value: number, labels?: Labels): void;
}

interface MetricsOptions {
  readonly log: Log;
  /** Longest wait for what must be read, milliseconds; 3,000 unless given. */
  readonly readTimeoutMs?: number;
  /** Most series of one name; 2,000 unless given. */
  readonly maxSeries?: number;
}

/** The meter that makes all instruments. */
const scopeName = "media-gateway";
const contentType = "text/plain; version=0.0.4; charset=utf-8";

/** Bounds of durations of whole requests, seconds: from a cached answer to a picture of the slowest model. */
export const requestSeconds: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600,
];

/** Exports gauges as they stand: one that was not read is left out instead of repeated. */
class PullReader extends MetricReader {
  constructor(maxSeries: number) {
    super({
      aggregationTemporalitySelector: (type) =>
        type === InstrumentType.OBSERVABLE_GAUGE
          ? AggregationTemporality.DELTA
          : AggregationTemporality.CUMULATIVE,
      cardinalitySelector: () => maxSeries, // 3.
    });
  }

  override async onForceFlush(): Promise<void> {}

  override async onShutdown(): Promise<void> {}
}

/** The metrics of one process; see the invariants at the top of the file. */
export class Metrics {
  readonly #log: Log;
  readonly #readTimeoutMs: number;
  readonly #reader: PullReader;
  readonly #provider: MeterProvider;
  readonly #serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  readonly #observables = new Map<string, (callback: ObservableCallback) => void>();

  constructor({ log, readTimeoutMs = 3000, maxSeries = 2000 }: MetricsOptions) {
    this.#log = log;
    this.#readTimeoutMs = readTimeoutMs;
    this.#reader = new PullReader(maxSeries);
    this.#provider = new MeterProvider({ readers: [this.#reader] });
  }

  /** A counter of this name, the same each time. */
  counter(name: string, help: string): Counter {
    return this.#meter().createCounter(name, { description: help });
  }

  /** A histogram of this name, the same each time; `bounds` ascend. */
  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const advice = { explicitBucketBoundaries: [...bounds] };
    return this.#meter().createHistogram(name, { description: help, advice });
  }

  /** Reads a metric whenever the metrics are asked for. Several may give values of one name, by other labels. */
  observe({ name, help, kind, read }: ObservedMetric): void {
    this.#observable(name, help, kind)(async (result) => observeAll(result, await read()));
  }

  /** All metrics as text. What could not be read in time is left out. */
  async scrape(): Promise<string> {
    const { resourceMetrics, errors } = await this.#reader.collect({ timeoutMillis: this.#readTimeoutMs }); // 2.
    for (const error of errors) this.#log.debug({ err: error }, "a figure could not be read");
    return this.#serializer.serialize(resourceMetrics);
  }

  /** Answers `GET /metrics`; false for all else. */
  readonly answer = (request: NodeRequest, response: NodeResponse): boolean => {
    if (request.url !== "/metrics" || (request.method !== "GET" && request.method !== "HEAD")) return false;
    this.scrape().then(
      (text) => {
        response.setHeader("content-type", contentType);
        response.end(text);
      },
      (thrown: unknown) => {
        this.#log.warn({ err: thrown }, "the metrics could not be told");
        response.statusCode = 500;
        response.end();
      },
    );
    return true;
  };

  #meter() {
    return this.#provider.getMeter(scopeName);
  }

  #observable(
    name: string,
    help: string,
    kind: ObservedMetric["kind"],
  ): (callback: ObservableCallback) => void {
    const known = this.#observables.get(name);
    if (known !== undefined) return known;
    const options = { description: help };
    const meter = this.#meter();
    const instrument =
      kind === "gauge"
        ? meter.createObservableGauge(name, options)
        : meter.createObservableCounter(name, options);
    const add = (callback: ObservableCallback) => instrument.addCallback(callback);
    this.#observables.set(name, add);
    return add;
  }
}

function observeAll(result: ObservableResult, readings: Readings): void {
  if (readings === undefined) return;
  if (typeof readings === "number") {
    result.observe(readings);
    return;
  }
  for (const { value, labels } of readings) result.observe(value, labels);
}
