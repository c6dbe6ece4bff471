import { expect, onTestFinished, test } from "vitest";
import { startOtlpReceiver } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import { readOtlpDelivery } from "../otlp/otlp-type.suite.ts";
import {
  deliveryErrorOf,
  describeDestinationType,
  suiteBatch,
  suiteContext,
  suiteHttp,
} from "../type.suite.ts";
import { grafana } from "./index.ts";

const path = "/otlp/v1/traces";
const basic = { user: "123456", password: "glc_1" };
const credentials = { instanceId: "123456", apiKey: "glc_1" };

describeDestinationType(grafana, async () => ({
  receiver: await startOtlpReceiver({ path, basic }),
  configAt: (baseUrl) => ({ ...credentials, baseUrl }),
  wrongConfigAt: (baseUrl) => ({ ...credentials, apiKey: "glc_2", baseUrl }),
  read: readOtlpDelivery,
  ownHeaders: ["authorization"],
}));

test("a wrong token is distinguished from a right one", async () => {
  const receiver = await startOtlpReceiver({ path, basic });
  onTestFinished(() => receiver.close());
  const config = { ...credentials, apiKey: "glc_2", baseUrl: receiver.baseUrl, headers: {} };
  const error = await deliveryErrorOf(grafana.deliver(suiteBatch, config, suiteContext(suiteHttp())));
  expect(error.status).toBe(401);
});

test.for(["", "/otlp", "/otlp/", path])("a base URL that ends in %j", (ending) => {
  const config = { ...credentials, baseUrl: `https://gateway.example${ending}`, headers: {} };
  expect(grafana.urlsOf(config).map(({ href }) => href)).toEqual([`https://gateway.example${path}`]);
});

test("every setting is required", () => {
  expect(grafana.readConfig({})).toEqual({
    issues: ["instanceId", "apiKey", "baseUrl"].map((name) => ({
      path: `config.${name}`,
      message: "is required",
    })),
  });
});
