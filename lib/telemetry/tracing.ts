import type { ConfigOf, processSpec } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import { silentTracer } from "../runtime/span.ts";
import type { Tracing } from "./trace-export.ts";

/**
 * Opens the traces of a process, which are sent to a collector over OTLP. Where none is configured nothing is recorded,
 * and nothing of OpenTelemetry is loaded. `processName` is the service's name unless another one is configured.
 */
export async function openTracing(
  config: ConfigOf<typeof processSpec>,
  processName: string,
  log: Log,
): Promise<Tracing> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: ratio } = config;
  if (endpoint === undefined || ratio === 0) return { tracer: silentTracer, close: async () => undefined };
  const { exportTraces } = await import("./trace-export.ts");
  return exportTraces({
    endpoint,
    ratio,
    headers: config.OTEL_EXPORTER_OTLP_HEADERS,
    serviceName: config.OTEL_SERVICE_NAME ?? processName,
    log,
  });
}
