import { OutboundHttpError } from "../../lib/http/outbound-error.ts";
import { readBodyText } from "../../lib/http/read-body.ts";
import { parseRetryAfterMs } from "../../lib/http/retry-after.ts";
import { ProviderError, type ProviderErrorKind } from "../contract.ts";
import type { ProviderHttpResponse } from "../provider-http.ts";

const errorBodyLimits = { maxBytes: 64 * 1024, timeoutMs: 2_000 };
const causeCharacters = 1_000;

/**
 * What the words of an error's code, type or status mean, in lower case; they say more than the HTTP status, which is the
 * last of them.
 */
export type ErrorMeanings = ReadonlyMap<string, ProviderErrorKind>;

/** What an error's text means where its codes are too few to tell; a phrase says more than they do. */
export type ErrorPhrases = readonly (readonly [phrase: RegExp, kind: ProviderErrorKind])[];

/** Words that mean the same wherever they are used. */
const usualMeanings: ErrorMeanings = new Map([
  ["content_policy_violation", "content_policy"],
  ["moderation_blocked", "content_policy"],
  ["content_filter", "content_policy"],
  ["contentfilter", "content_policy"],
  ["insufficient_quota", "credentials"],
  ["not_enough_credits", "credentials"],
  ["billing_hard_limit_reached", "credentials"],
  ["billing_not_active", "credentials"],
  ["invalid_api_key", "credentials"],
  ["account_deactivated", "credentials"],
  ["rate_limit_exceeded", "overloaded"],
]);

/** Meanings where there is no status to go by. */
const meaningsInStream: ErrorMeanings = new Map([
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

/** Reads an answer whose status says that it failed (at most 64 KiB, 2 s) and translates it. */
export async function errorFromAnswer(
  response: ProviderHttpResponse,
  nowMs: number,
  secrets: Secrets,
  meanings?: ErrorMeanings,
  phrases: ErrorPhrases = [],
): Promise<ProviderError> {
  const { status } = response;
  const details = parseErrorBody(await readBodyText(response, errorBodyLimits));
  const retryAfterMs = parseRetryAfterMs(response.headers, nowMs);
  const said = phrases.find(([phrase]) => phrase.test(details.text))?.[1];
  const names = [...details.names, String(status)];
  const kind = said ?? meaningOf({ ...details, names }, meanings, usualMeanings) ?? kindByStatus(status);
  return new ProviderError(kind, `The upstream answered with status ${status}.`, {
    status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    cause: describe(details, secrets),
  });
}

/** Translates an error that came as an event of a stream that had begun, or in an answer that claims success. */
export function errorFromEvent(
  event: Readonly<Record<string, unknown>>,
  secrets: Secrets,
  meanings?: ErrorMeanings,
): ProviderError {
  const details = errorDetails(event);
  const kind = meaningOf(details, meanings, usualMeanings, meaningsInStream) ?? "upstream";
  return new ProviderError(kind, "The upstream reported an error in its stream.", {
    cause: describe(details, secrets),
  });
}

function meaningOf(
  { names }: ErrorDetails,
  ...tables: readonly (ErrorMeanings | undefined)[]
): ProviderErrorKind | undefined {
  for (const table of tables) {
    for (const name of names) {
      const kind = table?.get(name.toLowerCase());
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

function kindByStatus(status: number): ProviderErrorKind {
  if (status < 400) return "bad_answer";
  if (status === 401 || status === 402 || status === 403) return "credentials";
  if (status === 408 || status === 504 || status === 524) return "timeout";
  if (status === 429 || status === 503 || status === 529) return "overloaded";
  return status < 500 ? "invalid_request" : "upstream";
}

interface ErrorDetails {
  /** Codes, types and states by whatever name, the most general last. */
  readonly names: readonly string[];
  readonly text: string;
}

function parseErrorBody(body: string): ErrorDetails {
  try {
    const parsed: unknown = JSON.parse(body);
    // Google's streams wrap their error in a list.
    const [error] = Array.isArray(parsed) ? parsed.filter(isRecord) : [parsed];
    if (isRecord(error)) return errorDetails(error);
  } catch {
    // Not JSON: a proxy's page, or cut off.
  }
  return { names: [], text: body };
}

const nameFields = [
  "code",
  "error_code",
  "err_code",
  "error_type",
  "reason",
  "status",
  "type",
  "category",
  "name",
];
const textFields = ["message", "err_msg", "msg", "title", "detail", "errors", "error"];
/** A bare `error` that is no sentence is the class of what was raised. */
const className = /^\w{1,100}$/;

/**
 * The error object, bare or under `error` or `detail`; a list of faults (`detail`, bare or under `message`) is given by place
 * and message.
 */
function errorDetails(body: Readonly<Record<string, unknown>>): ErrorDetails {
  const error = [body.error, body.detail].find(isRecord) ?? body;
  const details = [body.detail, isRecord(body.message) ? body.message.detail : undefined];
  const faults = details.find(Array.isArray)?.filter(isRecord) ?? [];
  const [said = stringsOf(body, textFields)[0] ?? ""] = stringsOf(error, textFields);
  const text =
    faults.length > 0
      ? faults.map((fault) => `${JSON.stringify(fault.loc)} ${String(fault.msg)}`).join("; ")
      : [said, ...stringsOf(error, ["details"])].join(": ");
  // Google's reasons lie a level deeper, and say more than its status.
  const reasons = Array.isArray(error.details) ? error.details.filter(isRecord) : [];
  const deeper = [
    ...reasons.flatMap((each) => stringsOf(each, ["reason"])),
    ...faults.flatMap((each) => stringsOf(each, ["type"])),
  ];
  const classes = stringsOf(body, ["error"]).filter((name) => className.test(name));
  return { names: [...deeper, ...stringsOf(error, nameFields), ...classes], text };
}

function stringsOf(object: Readonly<Record<string, unknown>>, fields: readonly string[]): readonly string[] {
  return fields
    .map((field) => object[field])
    .filter((value): value is string => typeof value === "string" && value !== "");
}

function describe({ names, text }: ErrorDetails, secrets: Secrets): string {
  let shown = `${names.length === 0 ? "" : `${names.join("/")}: `}${text}`;
  for (const secret of secrets) {
    if (secret !== "") shown = shown.replaceAll(secret, "[removed]");
  }
  return shown.slice(0, causeCharacters);
}

/** Whether a value is a JSON object. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
