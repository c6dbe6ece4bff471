import { appendPath, basicAuthorization, createOtlpType } from "../otlp/otlp-type.ts";
import { SettingsReader } from "../settings.ts";

/** Grafana Cloud, by its OTLP gateway. Settings: the stack's number, a token that may write traces, and the address. */
export const grafana = createOtlpType({
  slug: "grafana",
  secrets: ["apiKey"],
  readConfig(config) {
    const read = new SettingsReader(config);
    return read.done({
      instanceId: read.text("instanceId", {
        maxLength: 64,
        pattern: /^[0-9A-Za-z_-]+$/,
        expected: "must be letters and digits",
      }),
      apiKey: read.text("apiKey", { maxLength: 1024 }),
      baseUrl: read.url("baseUrl"),
      headers: read.headers(["authorization"]),
    });
  },
  connect: ({ instanceId, apiKey, baseUrl, headers }) => ({
    url: appendPath(baseUrl, "/otlp", "/v1/traces"),
    headers: { ...headers, authorization: basicAuthorization(instanceId, apiKey) },
  }),
});
