import type { JsonObject } from "@bufbuild/protobuf";
import { SettingsReader, type SettingsResult } from "../settings.ts";

/** Settings of a webhook. */
export interface WebhookConfig {
  /** http or https. */
  readonly url: string;
  readonly method: "POST" | "PUT";
  /** `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it; without one nothing is signed. */
  readonly signingSecret?: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads them. Everything that the signature's scheme sends is ours to set. */
export function readWebhookConfig(config: JsonObject): SettingsResult<WebhookConfig> {
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
