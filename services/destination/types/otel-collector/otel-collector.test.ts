import { expect, test } from "vitest";
import { spansOf, startOtlpReceiver } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import { describeDestinationType } from "../type.suite.ts";
import { otelCollector } from "./index.ts";

describeDestinationType(otelCollector, async () => ({
  receiver: await startOtlpReceiver(),
  configAt: (baseUrl) => ({ endpoint: baseUrl }),
  read: (request) => ({
    deliveryId: request.headers["x-delivery-id"] as string,
    events: spansOf(request).map(({ attributes }) => ({
      eventId: attributes["media.generation.id"],
      revision: Number(attributes["media.generation.revision"]),
    })),
  }),
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
