import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import {
  startWebhookReceiver,
  type WebhookReceiverOptions,
  webhookSpansOf,
} from "../../../../test/upstreams/receivers/webhook-receiver.ts";
import {
  deliveryErrorOf,
  describeDestinationType,
  suiteBatch,
  suiteContext,
  suiteHttp,
} from "../type.suite.ts";
import { type WebhookConfig, webhook } from "./index.ts";

const signingSecret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const otherSecret = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;

describeDestinationType(webhook, async () => ({
  receiver: await startWebhookReceiver({ secret: signingSecret }),
  configAt: (baseUrl) => ({ url: `${baseUrl}/hook`, signingSecret }),
  wrongConfigAt: (baseUrl) => ({ url: `${baseUrl}/hook`, signingSecret: otherSecret }),
  read: (request) => ({
    deliveryId: request.headers["webhook-id"] as string,
    events: webhookSpansOf(request).map(({ attributes }) => ({
      eventId: attributes["media.generation.id"],
      revision: Number(attributes["media.generation.revision"]),
    })),
  }),
  ownHeaders: ["webhook-id", "Webhook-Signature", "webhook-timestamp", "webhook-other"],
}));

async function start(options: WebhookReceiverOptions) {
  const receiver = await startWebhookReceiver(options);
  onTestFinished(() => receiver.close());
  return receiver;
}

async function deliver(config: Record<string, string>) {
  const read = webhook.readConfig(config);
  if ("issues" in read) throw new Error("not valid");
  const context = suiteContext(suiteHttp());
  return { receipt: await webhook.deliver(suiteBatch, read.config, context), config: read.config };
}

test("an attempt is signed for its own time, and no other body or time passes", async () => {
  const receiver = await start({ secret: signingSecret });
  await deliver({ url: `${receiver.baseUrl}/hook`, signingSecret });
  const [request] = receiver.requests;
  const headers = request?.headers as Record<string, string>;
  const verifier = new Webhook(signingSecret);
  expect(verifier.verify(request?.text ?? "", headers)).toEqual(request?.json);
  const earlier = String(Number(headers["webhook-timestamp"]) - 1);
  expect(() => verifier.verify(`${request?.text} `, headers)).toThrow("signature");
  expect(() => verifier.verify(request?.text ?? "", { ...headers, "webhook-timestamp": earlier })).toThrow(
    "signature",
  );
  expect(() => verifier.verify(request?.text ?? "", { ...headers, "webhook-id": "x" })).toThrow("signature");
});

test("a wrong secret is the receiver's refusal", async () => {
  const receiver = await start({ secret: `whsec_${Buffer.alloc(24, 9).toString("base64")}` });
  const error = await deliveryErrorOf(deliver({ url: `${receiver.baseUrl}/hook`, signingSecret }));
  expect(error.status).toBe(401);
});

test("without a secret nothing is signed, with the method of its owner", async () => {
  const receiver = await start({ method: "PUT" });
  const { receipt } = await deliver({ url: `${receiver.baseUrl}/hook`, method: "PUT" });
  expect(receipt).toEqual({ status: 204 });
  expect(receiver.requests[0]?.headers).toMatchObject({ "webhook-id": suiteBatch.id });
  expect(receiver.requests[0]?.headers).not.toHaveProperty("webhook-signature");
});

test("any 2xx means taken, whatever it says", async () => {
  const receiver = await start({});
  const url = `${receiver.baseUrl}/hook`;
  for (const body of ["", "ok", "<p>Thanks</p>", "{}", "x".repeat(100_000)]) {
    receiver.next({ kind: "answer", status: 202, headers: { "content-type": "text/html" }, body });
    expect((await deliver({ url })).receipt).toEqual({ status: 202 });
  }
});

test("settings", () => {
  const url = "https://hook.example/a?token=b";
  const config: WebhookConfig = { url, method: "POST", headers: {} };
  expect(webhook.readConfig({ url })).toEqual({ config });
  expect(webhook.readConfig({ url, method: null, signingSecret: "", headers: null, other: 1 })).toEqual({
    config,
  });
  expect(webhook.urlsOf(config).map(({ href }) => href)).toEqual([url]);
  expect(webhook.readConfig({ url, method: "GET" })).toEqual({
    issues: [{ path: "config.method", message: "must be one of POST, PUT" }],
  });
});

test.for([
  Buffer.alloc(24, 1).toString("base64"),
  "whsec_",
  `whsec_${Buffer.alloc(23, 1).toString("base64")}`,
  `whsec_${Buffer.alloc(65, 1).toString("base64")}`,
  `whsec_${Buffer.alloc(32, 1).toString("base64").replace("=", "")}`,
  `whsec_${"a b".repeat(12)}`,
])("a secret %s is refused", (secret) => {
  expect(webhook.readConfig({ url: "https://hook.example", signingSecret: secret })).toEqual({
    issues: [{ path: "config.signingSecret", message: "must be whsec_ and 24 to 64 bytes in base64" }],
  });
});
