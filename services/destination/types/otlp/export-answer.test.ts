import { expect, onTestFinished, test } from "vitest";
import { partialSuccess, startOtlpReceiver } from "../../../../test/upstreams/receivers/otlp-receiver.ts";
import type { ReceiverBehaviour } from "../../../../test/upstreams/receivers/receiver.ts";
import { otelCollector } from "../otel-collector/index.ts";
import { deliveryErrorOf, suiteBatch, suiteContext, suiteHttp } from "../type.suite.ts";

async function deliver(behaviour: ReceiverBehaviour) {
  const receiver = await startOtlpReceiver();
  onTestFinished(() => receiver.close());
  receiver.next(behaviour);
  const config = { endpoint: receiver.baseUrl, headers: {} };
  return await otelCollector.deliver(suiteBatch, config, suiteContext(suiteHttp()));
}

function answer(contentType: string, body: string | Uint8Array): ReceiverBehaviour {
  return { kind: "answer", status: 200, headers: { "content-type": contentType }, body };
}

test("spans that the receiver rejected fail the whole", async () => {
  const error = await deliveryErrorOf(deliver(partialSuccess(1n, "the secret words")));
  expect(error).toMatchObject({ status: 200, message: "the receiver rejected 1 of the spans" });
  expect(error.cause).toContain("the secret words");
});

test("so do they in JSON, as a number or as text", async () => {
  for (const rejectedSpans of [2, "2"]) {
    const body = JSON.stringify({ partialSuccess: { rejectedSpans } });
    const error = await deliveryErrorOf(deliver(answer("application/json; charset=utf-8", body)));
    expect(error.message).toBe("the receiver rejected 2 of the spans");
  }
});

test.for<[string, ReceiverBehaviour]>([
  ["a warning without rejected spans", partialSuccess(0n, "slow down")],
  ["nothing", answer("application/x-protobuf", "")],
  ["an empty object", answer("application/json", "{}")],
  ["an empty partial success", answer("application/json", '{"partialSuccess":{}}')],
  ["words that are no OTLP's", answer("text/plain", "ok")],
  ["202", { kind: "answer", status: 202 }],
])("an answer of %s means taken", async ([, behaviour]) => {
  expect((await deliver(behaviour)).status).toBeGreaterThanOrEqual(200);
});

test.for<[string, ReceiverBehaviour]>([
  ["protobuf that is none", answer("application/x-protobuf", Buffer.from([0x0a, 0xff]))],
  ["JSON that is none", answer("application/json", "<xml/>")],
  ["JSON of nothing", answer("application/json", "null")],
])("an answer of %s is not OTLP", async ([, behaviour]) => {
  const error = await deliveryErrorOf(deliver(behaviour));
  expect(error).toMatchObject({ status: 200, message: "what answers at the address does not speak OTLP" });
});
