import type { JsonObject } from "@bufbuild/protobuf";
import { Webhook } from "standardwebhooks";
import type { Batch, DeliveryContext, DeliveryReceipt, DestinationType } from "../contract.ts";
import { contentTypes, encodeExport } from "../otlp/export-request.ts";
import { checkAnswer } from "../receiver-answer.ts";
import { SettingsReader, type SettingsResult } from "../settings.ts";

/** Any HTTP address: OTLP in JSON, signed by the Standard Webhooks scheme. */
export const webhook: DestinationType<WebhookConfig> = {
  slug: "webhook",
  secrets: ["signingSecret"],
  readConfig,
  urlsOf: ({ url }) => [new URL(url)],
  // About 75 KB: many a framework takes no JSON beyond 100 KB unless told to.
  maxBatchEvents: 25,
  deliver: (batch, config, context) => send(batch.id, batch, { "x-delivery-id": batch.id }, config, context),
  test: (config, context) =>
    send(`connection-test-${context.nowMs()}`, undefined, { "x-test-connection": "true" }, config, context),
};

/**
 * Sends OTLP in JSON, with the headers of Standard Webhooks (github.com/standard-webhooks/standard-webhooks): id and
 * time always, the signature where there is a secret. Any 2xx means that it was taken. Throws DeliveryError.
 */
async function send(
  id: string,
  batch: Batch | undefined,
  mark: Readonly<Record<string, string>>,
  { url, method, signingSecret, headers }: WebhookConfig,
  { http, signal, nowMs }: DeliveryContext,
): Promise<DeliveryReceipt> {
  const body = encodeExport("json", batch);
  const sentAt = new Date(nowMs());
  const answer = await http.send({
    method,
    url,
    headers: {
      ...headers,
      "content-type": contentTypes.json,
      "webhook-id": id,
      "webhook-timestamp": String(Math.floor(sentAt.getTime() / 1000)),
      ...(signingSecret === undefined
        ? {}
        : { "webhook-signature": new Webhook(signingSecret).sign(id, sentAt, Buffer.from(body)) }),
      ...mark,
    },
    body,
    signal,
  });
  checkAnswer(answer, { nowMs: nowMs() });
  return { status: answer.status };
}

/** Settings of a webhook. */
export interface WebhookConfig {
  /** http or https. */
  readonly url: string;
  readonly method: "POST" | "PUT";
  /** `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it; without one nothing is signed. */
  readonly signingSecret?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Everything that the signature's scheme sends is ours to set. */
function readConfig(config: JsonObject): SettingsResult<WebhookConfig> {
  const read = new SettingsReader(config);
  const url = read.url("url");
  const method = read.oneOf("method", ["POST", "PUT"]);
  const signingSecret = read.optionalText("signingSecret", { maxLength: 128, ...secretRule });
  if (signingSecret !== undefined && signingSecret !== "" && !isKey(signingSecret)) {
    read.refuse("signingSecret", secretRule.expected);
  }
  const headers = read.headers(["webhook-*"]);
  return read.done({ url, method, ...(signingSecret === undefined ? {} : { signingSecret }), headers });
}

const secretRule = {
  pattern: /^whsec_[A-Za-z0-9+/]+={0,2}$/,
  expected: "must be whsec_ and 24 to 64 bytes in base64",
};

function isKey(secret: string): boolean {
  const text = secret.slice("whsec_".length);
  const bytes = Buffer.from(text, "base64");
  return bytes.length >= 24 && bytes.length <= 64 && bytes.toString("base64") === text;
}
