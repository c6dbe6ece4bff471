import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
  type FailedAttempt,
  FailedAttemptSchema,
  type FieldIssue,
  FieldIssueSchema,
} from "../../gen/media/error/v1/error_reason_pb.ts";
import { codeOfReason, reasonOfCode } from "./error-code.ts";

/** One fault in a request: `path` is dotted and empty for the body as a whole. */
export type Issue = Pick<FieldIssue, "path" | "message">;

/** One failed try at a provider; `providerStatus` is 0 when it gave none. */
export type AttemptFailure = Pick<FailedAttempt, "providerName" | "endpointId" | "providerStatus" | "reason">;

/** What a DomainError may carry besides its reason. */
export interface DomainErrorOptions {
  /** For the log, never for the caller. */
  cause?: unknown;
  issues?: readonly Issue[];
  attempts?: readonly AttemptFailure[];
  retryAfterMs?: number | undefined;
  generationId?: string;
}

const maxIssues = 20;

/**
 * The one error that handlers throw on purpose: a reason of the closed list and what helps to act on it.
 * Everything else that is thrown is a bug and becomes `internal`.
 */
export class DomainError extends Error {
  override readonly name = "DomainError";
  readonly reason: ErrorReason;
  readonly issues: readonly Issue[];
  readonly attempts: readonly AttemptFailure[];
  readonly retryAfterMs: number | undefined;
  readonly generationId: string;

  constructor(reason: ErrorReason, message: string, options: DomainErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.reason = reason;
    this.issues = (options.issues ?? []).slice(0, maxIssues);
    this.attempts = options.attempts ?? [];
    this.retryAfterMs = options.retryAfterMs;
    this.generationId = options.generationId ?? "";
  }

  /** A request that breaks the contract, with the faults found. */
  static invalid(
    issues: readonly Issue[],
    reason: ErrorReason = ErrorReason.INVALID_BODY,
    cause?: unknown,
  ): DomainError {
    const first = issues[0];
    const message = first === undefined ? "invalid request" : `${first.path || "body"}: ${first.message}`;
    return new DomainError(reason, message, { issues, cause });
  }

  /**
   * Any thrown value as a DomainError: our own detail of a ConnectError where it has one, else the reason that its
   * code stands for, else `internal` with the value as cause.
   */
  static from(thrown: unknown): DomainError {
    if (thrown instanceof DomainError) return thrown;
    if (!(thrown instanceof ConnectError)) {
      return new DomainError(ErrorReason.INTERNAL, "internal error", { cause: thrown });
    }
    // Connect wraps what a client's interceptor throws.
    if (thrown.cause instanceof DomainError) return thrown.cause;
    const detail = thrown.findDetails(ErrorDetailSchema)[0];
    if (detail === undefined) {
      return new DomainError(reasonOfCode(thrown.code), thrown.rawMessage, { cause: thrown });
    }
    return new DomainError(detail.reason, thrown.rawMessage, { cause: thrown, ...optionsOfDetail(detail) });
  }

  /** The same error, naming the generation that failed. */
  withGenerationId(generationId: string): DomainError {
    const { reason, message, cause, issues, attempts, retryAfterMs } = this;
    return new DomainError(reason, message, { cause, issues, attempts, retryAfterMs, generationId });
  }

  /** As it travels between processes: the reason's Connect code and an ErrorDetail. The cause stays behind. */
  toConnectError(): ConnectError {
    const error = new ConnectError(this.message, codeOfReason(this.reason));
    error.details.push({ desc: ErrorDetailSchema, value: this.#toDetail() });
    error.cause = this;
    return error;
  }

  #toDetail(): ErrorDetail {
    return create(ErrorDetailSchema, {
      reason: this.reason,
      issues: this.issues.map((issue) => create(FieldIssueSchema, issue)),
      attempts: this.attempts.map((attempt) => create(FailedAttemptSchema, attempt)),
      ...(this.retryAfterMs === undefined ? {} : { retryAfterMs: BigInt(Math.ceil(this.retryAfterMs)) }),
      generationId: this.generationId,
    });
  }
}

function optionsOfDetail({ issues, attempts, generationId, retryAfterMs }: ErrorDetail): DomainErrorOptions {
  const inMs = retryAfterMs === undefined ? undefined : Number(retryAfterMs);
  return { issues, attempts, generationId, retryAfterMs: inMs };
}
