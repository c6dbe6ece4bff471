import { appendPath, basicAuthorization, createOtlpType } from "../otlp/otlp-type.ts";
import { SettingsReader } from "../settings.ts";

/**
 * Langfuse, by its OTLP interface. Settings: the two keys of a project, and the region's or one's own installation's
 * address. Its own attributes: langfuse.com/integrations/native/opentelemetry.
 */
export const langfuse = createOtlpType({
  slug: "langfuse",
  secrets: ["secretKey"],
  readConfig(config) {
    const read = new SettingsReader(config);
    return read.done({
      publicKey: read.text("publicKey", { maxLength: 256, pattern: /^[\x21-\x39\x3b-\x7e]+$/ }),
      secretKey: read.text("secretKey", { maxLength: 256 }),
      baseUrl: read.url("baseUrl", "https://us.cloud.langfuse.com"),
      headers: read.headers(["authorization"]),
    });
  },
  connect: ({ publicKey, secretKey, baseUrl, headers }) => ({
    url: appendPath(baseUrl, "/api/public/otel", "/v1/traces"),
    headers: { ...headers, authorization: basicAuthorization(publicKey, secretKey) },
  }),
  describe: (_, trace) => ({
    "langfuse.observation.type": "generation",
    ...(typeof trace?.trace_name === "string" && trace.trace_name !== ""
      ? { "langfuse.trace.name": trace.trace_name }
      : {}),
  }),
});
