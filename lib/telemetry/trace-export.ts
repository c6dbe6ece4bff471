/**
 * Sends spans to a collector over OTLP with OpenTelemetry's SDK.
 *
 * 1. Nothing waits for the collector but the end of the process, and that for at most `flushTimeoutMs`.
 * 2. What is in memory is bounded: spans beyond the queue are dropped, and so is a batch that could not be sent in time.
 * 3. A span has few attributes of bounded length, whatever it is given.
 */

import { randomUUID } from "node:crypto";
import { type ExportResult, ExportResultCode, parseKeyPairsIntoRecord } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import {
  ATTR_SERVICE_INSTANCE_ID,
  ATTR_SERVICE_NAME,
  ATTR_SERVICE_NAMESPACE,
} from "@opentelemetry/semantic-conventions";
import type { Log } from "../runtime/log.ts";
import type { Tracer } from "../runtime/span.ts";
import { withLimit } from "../runtime/with-limit.ts";
import { createRecordingTracer } from "./trace-spans.ts";

/** The traces of a process. */
export interface Tracing {
  readonly tracer: Tracer;
  /** Sends what has ended, for at most a few seconds, and drops the rest. Never rejects. */
  close(): Promise<void>;
}

interface TraceExportOptions {
  readonly endpoint: string;
  /** Of the traces that callers begin, this share is recorded: above 0, to 1. */
  readonly ratio: number;
  /** Sent with each request, `name=value` pairs separated by commas; a secret. */
  readonly headers: string | undefined;
  readonly serviceName: string;
  readonly log: Log;
}

const spanLimits = {
  attributeCountLimit: 32,
  attributeValueLengthLimit: 256,
  eventCountLimit: 4,
  linkCountLimit: 32,
};
/** About 8 MiB of spans. */
const maxQueueSize = 4096;
const maxExportBatchSize = 512;
const batchDelayMs = 1000;
const exportTimeoutMs = 10_000;
const flushTimeoutMs = 3000;

/** Records and sends spans. */
export function exportTraces(options: TraceExportOptions): Tracing {
  const { endpoint, headers, ratio, log } = options;
  const exporter = new OTLPTraceExporter({
    url: `${endpoint}/v1/traces`,
    headers: parseKeyPairsIntoRecord(headers),
    timeoutMillis: exportTimeoutMs,
    concurrencyLimit: maxQueueSize / maxExportBatchSize + 1,
  });
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    spanLimits, // 3.
    resource: resourceOf(options.serviceName),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new LoggingExporter(exporter, log),
        maxQueueSize, // 2.
        maxExportBatchSize,
        scheduledDelayMillis: batchDelayMs,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  return {
    tracer: createRecordingTracer({ tracer: provider.getTracer("media-gateway"), ratio }),
    async close() {
      await withLimit(provider.shutdown(), { timeoutMs: flushTimeoutMs }).catch(() => undefined); // 1.
    },
  };
}

function resourceOf(serviceName: string) {
  const own = resourceFromAttributes({
    [ATTR_SERVICE_NAME]: serviceName,
    [ATTR_SERVICE_NAMESPACE]: "media-gateway",
    [ATTR_SERVICE_INSTANCE_ID]: randomUUID(),
  });
  const configured = detectResources({ detectors: [resourceAttributesEnvDetector] });
  return defaultResource().merge(own).merge(configured);
}

/** Logs when spans begin to be lost, and when they arrive again. */
class LoggingExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #log: Log;
  #isAway = false;

  constructor(exporter: SpanExporter, log: Log) {
    this.#exporter = exporter;
    this.#log = log;
  }

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    this.#exporter.export(spans, (result) => {
      const failed = result.code === ExportResultCode.FAILED;
      if (failed && !this.#isAway)
        this.#log.warn({ err: result.error }, "spans can't be sent and are dropped");
      if (!failed && this.#isAway) this.#log.info("spans are sent again");
      this.#isAway = failed;
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}
