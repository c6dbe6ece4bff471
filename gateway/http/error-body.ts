import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { AttemptFailure, DomainError, Issue } from "../../lib/runtime/domain-error.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import { retryAdvice, shouldRetryHeader } from "./retry-advice.ts";

/** What an operation may answer, and what stands in for a status that it may not use. */
interface OperationRule {
  readonly allowed: readonly number[];
  /** Status → the one to answer instead; a status neither allowed nor listed here becomes 500. */
  readonly instead: Readonly<Record<number, number>>;
  /** Statuses of reasons that stand for others here. */
  readonly byReason?: Readonly<Partial<Record<ErrorReason, number>>>;
  /** Whether every 404 looks alike, so that nothing can be learnt from it. */
  readonly hidesExistence?: true;
}

const managementStatuses = [400, 401, 403, 404, 409, 500] as const;

/** The one table of which operation answers which statuses. */
const operationRules = {
  speech: {
    allowed: [400, 401, 402, 404, 429, 500, 502, 503, 524, 529],
    instead: { 403: 401, 413: 400 },
  },
  images: {
    allowed: [400, 401, 402, 403, 404, 413, 429, 500, 502, 524, 529],
    instead: { 503: 500 },
    byReason: { [ErrorReason.OVERLOADED]: 529 },
  },
  activity: { allowed: [400, 401, 403, 404, 500], instead: {} },
  deleteDestination: {
    allowed: [401, 404, 500],
    instead: { 400: 404, 403: 404 },
    hidesExistence: true,
  },
  management: { allowed: managementStatuses, instead: { 413: 400 } },
  consoleSession: { allowed: [400, 404, 409, 429, 500], instead: { 413: 400 }, hidesExistence: true },
  /** What is no operation of the API: unknown routes, requests that are no HTTP, pages at the root. */
  unrouted: { allowed: [400, 404, 500], instead: { 413: 400 } },
} as const satisfies Record<string, OperationRule>;

/** An operation, as far as it decides about the statuses of errors. */
export type Operation = keyof typeof operationRules;

/** Every operation. */
export const operations = Object.keys(operationRules) as readonly Operation[];

/** The statuses of errors that an operation may answer. */
export function allowedStatuses(operation: Operation): readonly number[] {
  return operationRules[operation].allowed;
}

/** Whether requests of an operation are limited and may be shed, as its statuses say; all else goes on whatever comes. */
export function isLimited(operation: Operation): boolean {
  return allowedStatuses(operation).includes(429);
}

const statusByReason: Readonly<Record<ErrorReason, number>> = {
  [ErrorReason.UNSPECIFIED]: 500,
  [ErrorReason.INTERNAL]: 500,
  [ErrorReason.KEY_MISSING]: 401,
  [ErrorReason.KEY_UNKNOWN]: 401,
  [ErrorReason.KEY_EXPIRED]: 401,
  [ErrorReason.KEY_DISABLED]: 401,
  [ErrorReason.INFERENCE_KEY_REQUIRED]: 403,
  [ErrorReason.MANAGEMENT_KEY_REQUIRED]: 403,
  [ErrorReason.SCOPE_MISSING]: 403,
  // A service refused this gateway itself: our fault, whatever key the caller has.
  [ErrorReason.CALLER_NOT_ALLOWED]: 500,
  [ErrorReason.INVALID_BODY]: 400,
  [ErrorReason.SIZE_CONFLICT]: 400,
  [ErrorReason.UNSUPPORTED_PARAMETER]: 400,
  [ErrorReason.REFERENCE_REFUSED]: 400,
  [ErrorReason.NOTHING_TO_SPEAK]: 400,
  [ErrorReason.BODY_TOO_LARGE]: 413,
  [ErrorReason.MODEL_UNKNOWN]: 404,
  [ErrorReason.NO_ENDPOINT_LEFT]: 404,
  [ErrorReason.RECORD_UNKNOWN]: 404,
  [ErrorReason.ROUTE_UNKNOWN]: 404,
  [ErrorReason.CREDITS_EXHAUSTED]: 402,
  [ErrorReason.KEY_LIMIT_REACHED]: 402,
  [ErrorReason.COUNT_LIMIT_REACHED]: 409,
  [ErrorReason.LAST_MANAGEMENT_KEY]: 409,
  [ErrorReason.RATE_LIMITED]: 429,
  [ErrorReason.TOO_MANY_IN_FLIGHT]: 429,
  [ErrorReason.PROVIDER_FAILED]: 502,
  [ErrorReason.PROVIDER_BAD_ANSWER]: 502,
  [ErrorReason.CONTENT_POLICY]: 502,
  [ErrorReason.PROVIDER_CREDENTIALS]: 502,
  [ErrorReason.PROVIDER_OVERLOADED]: 529,
  [ErrorReason.SERVICE_UNAVAILABLE]: 503,
  [ErrorReason.TIMED_OUT]: 524,
  // Only seen when a service cancelled by itself; a caller who left sees nothing at all.
  [ErrorReason.CANCELLED]: 503,
  [ErrorReason.OVERLOADED]: 503,
};

const messageByStatus: Readonly<Record<number, string>> = {
  400: "Invalid request parameters",
  401: "Missing Authentication header",
  402: "Insufficient credits. Add more using",
  403: "Only management keys can perform this operation",
  404: "Resource not found",
  409: "Conflict",
  413: "Request payload too large",
  429: "Rate limit exceeded",
  500: "Internal Server Error",
  502: "Provider returned error",
  503: "Service temporarily unavailable",
  524: "Request timed out. Please try again later.",
  529: "Provider returned error",
};

/** Statuses whose answers name the attempts that failed. */
const providerStatuses: ReadonlySet<number> = new Set([502, 524, 529]);
const retryAfterStatuses: ReadonlySet<number> = new Set([429, 503, 524, 529]);

/** What helps to act on an error. */
interface ErrorMetadata {
  reason: string;
  issues?: readonly Issue[];
  provider_name?: string;
  provider_status?: number;
  attempts?: readonly {
    provider_name: string;
    endpoint_id: string;
    /** Null when the provider gave none. */
    status: number | null;
    reason: string;
  }[];
  retry_after_s?: number;
}

/** The body of every error. */
export interface ErrorBody {
  error: { code: number; message: string; metadata: ErrorMetadata };
}

/**
 * The answer of an operation to an error: a status that the operation may use, the fixed message of that status, and
 * what is known about the cause. No text of the error itself leaves but its issues.
 */
export function toErrorAnswer(error: DomainError, operation: Operation, creditsUrl: string) {
  const rule: OperationRule = operationRules[operation];
  const status = permittedStatus(rule, rule.byReason?.[error.reason] ?? statusByReason[error.reason] ?? 500);
  const metadata: ErrorMetadata =
    rule.hidesExistence && status === 404
      ? { reason: wordOfReason(ErrorReason.RECORD_UNKNOWN) }
      : metadataOf(error, status);
  const message = messageOfStatus(status, creditsUrl);
  const body: ErrorBody = { error: { code: status, message, metadata } };
  return { status, headers: headersOf(error, status), body };
}

/** The fixed message of a status. */
export function messageOfStatus(status: number, creditsUrl: string): string {
  const text = messageByStatus[status] ?? "";
  return status === 402 ? `${text} ${creditsUrl}` : text;
}

function permittedStatus({ allowed, instead }: OperationRule, status: number): number {
  return allowed.includes(status) ? status : (instead[status] ?? 500);
}

function headersOf(error: DomainError, status: number): Record<string, string> {
  const headers: Record<string, string> = {};
  if (status === 401) headers["www-authenticate"] = "Bearer";
  if (error.generationId !== "") headers["x-generation-id"] = error.generationId;
  const advice = retryAdvice(error);
  if (advice !== undefined) headers[shouldRetryHeader] = String(advice);
  const retryAfter = retryAfterSeconds(error);
  if (retryAfter !== undefined && retryAfterStatuses.has(status)) headers["retry-after"] = String(retryAfter);
  return headers;
}

function metadataOf(error: DomainError, status: number): ErrorMetadata {
  const retryAfter = retryAfterSeconds(error);
  return {
    reason: shownReason(error.reason),
    ...(status === 400 && error.issues.length > 0 ? { issues: error.issues.map(plainIssue) } : {}),
    ...(providerStatuses.has(status) ? attemptsOf(error.attempts) : {}),
    ...(retryAfter === undefined ? {} : { retry_after_s: retryAfter }),
  };
}

/** A misconfiguration between our own processes is nothing that a caller could act on. */
function shownReason(reason: ErrorReason): string {
  const ours = reason === ErrorReason.UNSPECIFIED || reason === ErrorReason.CALLER_NOT_ALLOWED;
  return wordOfReason(ours ? ErrorReason.INTERNAL : reason);
}

function plainIssue({ path, message }: Issue): Issue {
  return { path, message };
}

function attemptsOf(attempts: readonly AttemptFailure[]): Partial<ErrorMetadata> {
  const last = attempts.at(-1);
  if (last === undefined) return {};
  return {
    provider_name: last.providerName,
    ...(last.providerStatus === 0 ? {} : { provider_status: last.providerStatus }),
    attempts: attempts.map(({ providerName, endpointId, providerStatus, reason }) => ({
      provider_name: providerName,
      endpoint_id: endpointId,
      status: providerStatus === 0 ? null : providerStatus,
      reason: wordOfReason(reason),
    })),
  };
}

function retryAfterSeconds({ retryAfterMs }: DomainError): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000));
}
