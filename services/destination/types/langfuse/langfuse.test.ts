import { expect, onTestFinished, test } from "vitest";
import { usageEvent } from "../../../../test/support/services/usage-events.ts";
import { spansOf, startOtlpReceiver } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import { readOtlpDelivery } from "../otlp/otlp-type.suite.ts";
import {
  deliveryErrorOf,
  describeDestinationType,
  suiteBatch,
  suiteContext,
  suiteHttp,
} from "../type.suite.ts";
import { langfuse } from "./index.ts";

const path = "/api/public/otel/v1/traces";
const basic = { user: "pk-lf-1", password: "sk-lf-1" };
const keys = { publicKey: "pk-lf-1", secretKey: "sk-lf-1" };

describeDestinationType(langfuse, async () => ({
  receiver: await startOtlpReceiver({ path, basic }),
  configAt: (baseUrl) => ({ ...keys, baseUrl }),
  wrongConfigAt: (baseUrl) => ({ ...keys, secretKey: "sk-lf-2", baseUrl }),
  read: readOtlpDelivery,
  ownHeaders: ["Authorization"],
}));

async function deliver(config: Record<string, string>, trace?: Record<string, string>) {
  const receiver = await startOtlpReceiver({ path, basic });
  onTestFinished(() => receiver.close());
  const read = langfuse.readConfig({ ...keys, baseUrl: receiver.baseUrl, ...config });
  if ("issues" in read) throw new Error("not valid");
  const events = [usageEvent(trace === undefined ? {} : { trace })];
  await langfuse.deliver({ ...suiteBatch, events }, read.config, suiteContext(suiteHttp()));
  return spansOf(await receiver.received(1))[0]?.attributes;
}

test("a wrong key is distinguished from a right one", async () => {
  const error = await deliveryErrorOf(deliver({ secretKey: "sk-lf-2" }));
  expect(error).toMatchObject({ status: 401, cause: "invalid credentials" });
});

test("a generation is called so, and the caller's trace by its name", async () => {
  expect(await deliver({}, { trace_name: "checkout" })).toMatchObject({
    "langfuse.observation.type": "generation",
    "langfuse.trace.name": "checkout",
  });
  expect(await deliver({})).not.toHaveProperty("langfuse.trace.name");
});

test("without an address it is that of the United States", () => {
  const read = langfuse.readConfig(keys);
  expect(read).toEqual({ config: { ...keys, baseUrl: "https://us.cloud.langfuse.com", headers: {} } });
  if ("issues" in read) throw new Error("not valid");
  expect(langfuse.urlsOf(read.config).map(({ href }) => href)).toEqual([
    `https://us.cloud.langfuse.com${path}`,
  ]);
});

test.for(["", "/", "/api/public/otel", "/api/public/otel/", path])("a base URL that ends in %j", (ending) => {
  const config = { ...keys, baseUrl: `https://langfuse.example${ending}`, headers: {} };
  expect(langfuse.urlsOf(config).map(({ href }) => href)).toEqual([`https://langfuse.example${path}`]);
});

test("a public key that would read as another user is refused", () => {
  expect(langfuse.readConfig({ ...keys, publicKey: "a:b" })).toMatchObject({
    issues: [{ path: "config.publicKey" }],
  });
  expect(langfuse.readConfig({ ...keys, secretKey: "sk lf" })).toMatchObject({
    issues: [{ path: "config.secretKey" }],
  });
});
