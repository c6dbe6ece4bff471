import { appendPath, createOtlpType } from "../otlp/otlp-type.ts";
import { SettingsReader } from "../settings.ts";

/**
 * Whatever speaks OTLP over HTTP, such as an OpenTelemetry Collector. Settings: where it listens, with or without
 * `/v1/traces`.
 */
export const otelCollector = createOtlpType({
  slug: "otel-collector",
  secrets: [],
  readConfig(config) {
    const read = new SettingsReader(config);
    return read.done({ endpoint: read.url("endpoint"), headers: read.headers() });
  },
  connect: ({ endpoint, headers }) => ({ url: appendPath(endpoint, "/v1/traces"), headers }),
});
