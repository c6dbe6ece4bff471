import type { DestinationType } from "../contract.ts";
import { readWebhookConfig, type WebhookConfig } from "./config.ts";
import { sendWebhook } from "./deliver.ts";

/** Any HTTP address: OTLP in JSON, signed by the Standard Webhooks scheme. */
export const webhook: DestinationType<WebhookConfig> = {
  slug: "webhook",
  secrets: ["signingSecret"],
  readConfig: readWebhookConfig,
  urlsOf: ({ url }) => [new URL(url)],
  // About 75 KB: many a framework takes no JSON beyond 100 KB unless told to.
  maxBatchEvents: 25,
  deliver: async (batch, config, context) =>
    sendWebhook({ id: batch.id, batch, mark: { "x-delivery-id": batch.id } }, config, context),
  test: async (config, context) => {
    const id = `connection-test-${context.nowMs()}`;
    return sendWebhook({ id, batch: undefined, mark: { "x-test-connection": "true" } }, config, context);
  },
};
