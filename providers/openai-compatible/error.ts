import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { readBodyText } from "../../lib/http/read-body.ts";
import { parseRetryAfterMs } from "../../lib/http/retry-after.ts";
import { ProviderError, type ProviderErrorKind, type ProviderHttpResponse } from "../contract.ts";

const errorBodyLimits = { maxBytes: 64 * 1024, timeoutMs: 2_000 };
const causeCharacters = 1_000;

/** Meanings of `error.code` and `error.type` that say more than the status. */
const kindByCode: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["content_policy_violation", "content_policy"],
  ["moderation_blocked", "content_policy"],
  ["content_filter", "content_policy"],
  ["insufficient_quota", "credentials"],
  ["billing_hard_limit_reached", "credentials"],
  ["billing_not_active", "credentials"],
  ["invalid_api_key", "credentials"],
  ["account_deactivated", "credentials"],
  ["rate_limit_exceeded", "overloaded"],
]);

/** Meanings of `error.type` where there is no status to go by. */
const kindByTypeInStream: ReadonlyMap<string, ProviderErrorKind> = new Map([
  ["invalid_request_error", "invalid_request"],
  ["image_generation_user_error", "invalid_request"],
  ["authentication_error", "credentials"],
  ["permission_error", "credentials"],
  ["rate_limit_error", "overloaded"],
  ["overloaded_error", "overloaded"],
]);

/** What must not show in a cause: the key, the caller's text. */
export type Secrets = readonly string[];

/** Translates what reaching the upstream threw. An aborted signal's reason passes through where it is a ProviderError. */
export function errorFromTransport(error: unknown, signal: AbortSignal): ProviderError {
  if (error instanceof ProviderError) return error;
  if (!(error instanceof OutboundHttpError)) {
    return new ProviderError("bad_answer", "The upstream's answer cannot be read.", { cause: error });
  }
  if (error.kind === "aborted" && signal.aborted) {
    if (signal.reason instanceof ProviderError) return signal.reason;
    return new ProviderError("timeout", "The attempt was ended before the answer was whole.", {
      cause: error,
    });
  }
  const [kind, message] = meaningByTransport[error.kind];
  return new ProviderError(kind, message, { cause: error });
}

const brokeOff = ["network", "The connection to the upstream broke."] as const;
const unreadable = ["bad_answer", "The upstream's answer cannot be read."] as const;

const meaningByTransport: Readonly<
  Record<OutboundHttpError["kind"], readonly [kind: ProviderErrorKind, message: string]>
> = {
  connect: ["network", "The upstream cannot be reached."],
  timeout: ["timeout", "The upstream was too slow."],
  aborted: brokeOff,
  reset: brokeOff,
  too_large: unreadable,
  protocol: unreadable,
};

/** Reads an answer whose status is not 200 (at most 64 KiB, 2 s) and translates it. */
export async function errorFromAnswer(
  response: ProviderHttpResponse,
  nowMs: number,
  secrets: Secrets,
): Promise<ProviderError> {
  const { status } = response;
  const details = parseErrorBody(await readBodyText(response, errorBodyLimits));
  const retryAfterMs = parseRetryAfterMs(response.headers, nowMs);
  const kind = kindByCode.get(details.code) ?? kindByCode.get(details.type) ?? kindByStatus(status);
  return new ProviderError(kind, `The upstream answered with status ${status}.`, {
    status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: describe(details, secrets),
  });
}

/** Translates an error that came as an event of a stream that had begun. */
export function errorFromEvent(event: Readonly<Record<string, unknown>>, secrets: Secrets): ProviderError {
  const details = errorDetails(event);
  const kind =
    kindByCode.get(details.code) ??
    kindByCode.get(details.type) ??
    kindByTypeInStream.get(details.type) ??
    "upstream";
  return new ProviderError(kind, "The upstream reported an error in its stream.", {
    cause: describe(details, secrets),
  });
}

function kindByStatus(status: number): ProviderErrorKind {
  if (status < 400) return "bad_answer";
  if (status === 401 || status === 402 || status === 403) return "credentials";
  if (status === 408 || status === 504 || status === 524) return "timeout";
  if (status === 429 || status === 503 || status === 529) return "overloaded";
  return status < 500 ? "invalid_request" : "upstream";
}

interface ErrorDetails {
  code: string;
  type: string;
  text: string;
}

function parseErrorBody(body: string): ErrorDetails {
  try {
    const parsed: unknown = JSON.parse(body);
    if (isRecord(parsed)) return errorDetails(parsed);
  } catch {
    // Not JSON: a proxy's page, or cut off.
  }
  return { code: "", type: "", text: body };
}

/** The error object, bare or under `error`; a list of faults (`detail`) is given by place and message. */
function errorDetails(body: Readonly<Record<string, unknown>>): ErrorDetails {
  const error = isRecord(body.error) ? body.error : body;
  const faults = Array.isArray(body.detail) ? body.detail.filter(isRecord) : [];
  const text =
    faults.length > 0
      ? faults.map((fault) => `${JSON.stringify(fault.loc)} ${String(fault.msg)}`).join("; ")
      : firstString(error.message, body.error, body.detail, body.message);
  return { code: firstString(error.code), type: firstString(error.type), text };
}

function describe(details: ErrorDetails, secrets: Secrets): string {
  let text = details.text;
  for (const secret of secrets) {
    if (secret !== "") text = text.replaceAll(secret, "[removed]");
  }
  const names = [details.type, details.code].filter((name) => name !== "").join("/");
  return `${names === "" ? "" : `${names}: `}${text}`.slice(0, causeCharacters);
}

function firstString(...values: unknown[]): string {
  for (const value of values) {
    if (typeof value === "string") return value;
  }
  return "";
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
