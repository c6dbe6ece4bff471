/** A stand-in for a webhook that verifies signatures with the library of Standard Webhooks. */
import { Webhook } from "standardwebhooks";
import type { ReceivedRequest } from "../stand-in/stand-in-server.ts";
import { decodeJsonExport, type OtlpSpan } from "./otlp-decode.ts";
import { type Receiver, type ReceiverVerdict, refuse, startReceiver } from "./receiver.ts";

/** Options of startWebhookReceiver. */
export interface WebhookReceiverOptions {
  /** `whsec_…`: it takes only what is signed with it. Without one it takes only what is not signed. */
  readonly secret?: string;
  readonly method?: "POST" | "PUT";
}

/** Starts it at /hook. It answers 204, as many do. */
export function startWebhookReceiver(options: WebhookReceiverOptions = {}): Promise<Receiver> {
  return startReceiver({ judge: (request) => judge(request, options) });
}

/** The spans of a request that it took. */
export function webhookSpansOf(request: ReceivedRequest): OtlpSpan[] {
  return decodeJsonExport(request.text);
}

function judge(
  request: ReceivedRequest,
  { secret, method = "POST" }: WebhookReceiverOptions,
): ReceiverVerdict {
  const { headers } = request;
  if (request.path !== "/hook") return refuse(404, "no such hook");
  if (request.method !== method) return refuse(405, `only ${method}`);
  if (headers["content-type"] !== "application/json") return refuse(415, "not JSON");
  if (!/^\d{10}$/.test(String(headers["webhook-timestamp"]))) return refuse(400, "no time");
  if (headers["webhook-id"] === undefined) return refuse(400, "no id");
  try {
    if (secret !== undefined) {
      new Webhook(secret).verify(request.bytes, headers as Record<string, string>);
    } else if (headers["webhook-signature"] !== undefined) {
      return refuse(400, "signed with a secret that is not ours");
    }
  } catch (thrown) {
    return refuse(401, String(thrown));
  }
  try {
    decodeJsonExport(request.text);
  } catch (thrown) {
    return refuse(400, String(thrown));
  }
  return { isTaken: true, status: 204 };
}
