import { Webhook } from "standardwebhooks";
import type { Batch, DeliveryContext, DeliveryReceipt } from "../contract.ts";
import { contentTypes, encodeExport } from "../otlp/export-request.ts";
import { checkAnswer } from "../receiver-answer.ts";
import type { WebhookConfig } from "./config.ts";

/** What one request carries: a batch, or none and a mark. */
export interface WebhookMessage {
  /** The `webhook-id`. */
  readonly id: string;
  readonly batch: Batch | undefined;
  readonly mark: Readonly<Record<string, string>>;
}

/**
 * Sends OTLP in JSON, with the headers of Standard Webhooks (github.com/standard-webhooks/standard-webhooks): id and
 * time always, the signature where there is a secret. Any 2xx means that it was taken. Throws DeliveryError.
 */
export async function sendWebhook(
  { id, batch, mark }: WebhookMessage,
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
