import { expect, test } from "vitest";
import { startOtlpReceiver } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import { readOtlpDelivery } from "../otlp/otlp-type.suite.ts";
import { describeDestinationType } from "../type.suite.ts";
import { otelCollector } from "./index.ts";

describeDestinationType(otelCollector, async () => ({
  receiver: await startOtlpReceiver(),
  configAt: (baseUrl) => ({ endpoint: baseUrl }),
  read: readOtlpDelivery,
  ownHeaders: [],
}));

test.for([
  ["https://collector.example", "https://collector.example/v1/traces"],
  ["https://collector.example/", "https://collector.example/v1/traces"],
  ["https://collector.example/v1/traces", "https://collector.example/v1/traces"],
  ["https://collector.example/v1/traces/", "https://collector.example/v1/traces"],
  ["https://collector.example/tenant/v1", "https://collector.example/tenant/v1/v1/traces"],
  ["http://collector.example:4318/a?b=c#d", "http://collector.example:4318/a/v1/traces?b=c"],
])("an endpoint %s is called at %s", ([endpoint = "", url]) => {
  expect(otelCollector.urlsOf({ endpoint, headers: {} }).map(({ href }) => href)).toEqual([url]);
});

test.for([
  "ftp://a.example",
  "collector.example",
  "https://user:password@a.example",
  "https://a b",
  "",
  "//a",
])("an endpoint %j is refused", (endpoint) => {
  expect(otelCollector.readConfig({ endpoint })).toMatchObject({ issues: [{ path: "config.endpoint" }] });
});
