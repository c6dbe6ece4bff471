import type { DestinationType } from "../contract.ts";
import { createOtlpType } from "../otlp/otlp-type.ts";
import { SettingsReader } from "../settings.ts";
import { appendPath } from "../url-path.ts";

/** Settings: where the collector listens for OTLP over HTTP, with or without `/v1/traces`. */
export interface OtelCollectorConfig {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Whatever speaks OTLP over HTTP, such as an OpenTelemetry Collector. */
export const otelCollector: DestinationType<OtelCollectorConfig> = createOtlpType({
  slug: "otel-collector",
  secrets: [],
  readConfig(config) {
    const read = new SettingsReader(config);
    return read.done({ endpoint: read.url("endpoint"), headers: read.headers() });
  },
  connect: ({ endpoint, headers }) => ({ url: appendPath(endpoint, "/v1/traces"), headers }),
});
