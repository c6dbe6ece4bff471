import { Code } from "@connectrpc/connect";
import { ErrorReason, ErrorReasonSchema } from "../../gen/media/error/v1/error_reason_pb.ts";

const codeByReason: Readonly<Record<ErrorReason, Code>> = {
  [ErrorReason.UNSPECIFIED]: Code.Internal,
  [ErrorReason.INTERNAL]: Code.Internal,
  [ErrorReason.KEY_MISSING]: Code.Unauthenticated,
  [ErrorReason.KEY_UNKNOWN]: Code.Unauthenticated,
  [ErrorReason.KEY_EXPIRED]: Code.Unauthenticated,
  [ErrorReason.KEY_DISABLED]: Code.Unauthenticated,
  [ErrorReason.INFERENCE_KEY_REQUIRED]: Code.PermissionDenied,
  [ErrorReason.MANAGEMENT_KEY_REQUIRED]: Code.PermissionDenied,
  [ErrorReason.SCOPE_MISSING]: Code.PermissionDenied,
  [ErrorReason.CALLER_NOT_ALLOWED]: Code.PermissionDenied,
  [ErrorReason.INVALID_BODY]: Code.InvalidArgument,
  [ErrorReason.SIZE_CONFLICT]: Code.InvalidArgument,
  [ErrorReason.UNSUPPORTED_PARAMETER]: Code.InvalidArgument,
  [ErrorReason.REFERENCE_REFUSED]: Code.InvalidArgument,
  [ErrorReason.NOTHING_TO_SPEAK]: Code.InvalidArgument,
  [ErrorReason.BODY_TOO_LARGE]: Code.InvalidArgument,
  [ErrorReason.MODEL_UNKNOWN]: Code.NotFound,
  [ErrorReason.NO_ENDPOINT_LEFT]: Code.NotFound,
  [ErrorReason.RECORD_UNKNOWN]: Code.NotFound,
  [ErrorReason.ROUTE_UNKNOWN]: Code.NotFound,
  [ErrorReason.CREDITS_EXHAUSTED]: Code.FailedPrecondition,
  [ErrorReason.KEY_LIMIT_REACHED]: Code.FailedPrecondition,
  [ErrorReason.COUNT_LIMIT_REACHED]: Code.AlreadyExists,
  [ErrorReason.LAST_MANAGEMENT_KEY]: Code.AlreadyExists,
  [ErrorReason.RATE_LIMITED]: Code.ResourceExhausted,
  [ErrorReason.TOO_MANY_IN_FLIGHT]: Code.ResourceExhausted,
  [ErrorReason.PROVIDER_FAILED]: Code.Aborted,
  [ErrorReason.PROVIDER_BAD_ANSWER]: Code.Aborted,
  [ErrorReason.CONTENT_POLICY]: Code.Aborted,
  [ErrorReason.PROVIDER_CREDENTIALS]: Code.Aborted,
  [ErrorReason.PROVIDER_OVERLOADED]: Code.Unavailable,
  [ErrorReason.SERVICE_UNAVAILABLE]: Code.Unavailable,
  [ErrorReason.TIMED_OUT]: Code.DeadlineExceeded,
  [ErrorReason.CANCELLED]: Code.Canceled,
  [ErrorReason.OVERLOADED]: Code.Unavailable,
};

/** The Connect code that a reason always travels with, as error_reason.proto states it. */
export function codeOfReason(reason: ErrorReason): Code {
  return codeByReason[reason] ?? Code.Internal;
}

const reasonByCode: Readonly<Partial<Record<Code, ErrorReason>>> = {
  [Code.Canceled]: ErrorReason.CANCELLED,
  [Code.InvalidArgument]: ErrorReason.INVALID_BODY,
  [Code.DeadlineExceeded]: ErrorReason.TIMED_OUT,
  [Code.NotFound]: ErrorReason.RECORD_UNKNOWN,
  [Code.PermissionDenied]: ErrorReason.CALLER_NOT_ALLOWED,
  [Code.Unauthenticated]: ErrorReason.KEY_UNKNOWN,
  [Code.Unavailable]: ErrorReason.SERVICE_UNAVAILABLE,
  // Without our detail this code means that the connection broke.
  [Code.Aborted]: ErrorReason.SERVICE_UNAVAILABLE,
  // Without our detail this code means that a message was over a limit of the wire, never a rate limit.
  [Code.ResourceExhausted]: ErrorReason.BODY_TOO_LARGE,
};

/** What an error without our detail stands for; `internal` for codes that only a handler gives meaning to. */
export function reasonOfCode(code: Code): ErrorReason {
  return reasonByCode[code] ?? ErrorReason.INTERNAL;
}

/** A reason as the REST interface and usage records write it: `key_missing`. */
export function wordOfReason(reason: ErrorReason): string {
  return (ErrorReasonSchema.value[reason]?.localName ?? "INTERNAL").toLowerCase();
}
