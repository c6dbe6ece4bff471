import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { AttemptFailure, DomainError } from "../../lib/runtime/domain-error.ts";

/** The header that says to SDKs of the OpenAI kind whether to send a request again; else the status decides. */
export const shouldRetryHeader = "x-should-retry";

/** Whether the same request may succeed when it is sent again; undefined: nobody knows. */
const retryByReason: Readonly<Record<ErrorReason, boolean | undefined>> = {
  [ErrorReason.UNSPECIFIED]: undefined,
  [ErrorReason.INTERNAL]: undefined,
  [ErrorReason.KEY_MISSING]: false,
  [ErrorReason.KEY_UNKNOWN]: false,
  [ErrorReason.KEY_EXPIRED]: false,
  [ErrorReason.KEY_DISABLED]: false,
  [ErrorReason.INFERENCE_KEY_REQUIRED]: false,
  [ErrorReason.MANAGEMENT_KEY_REQUIRED]: false,
  [ErrorReason.SCOPE_MISSING]: false,
  [ErrorReason.CALLER_NOT_ALLOWED]: undefined,
  [ErrorReason.INVALID_BODY]: false,
  [ErrorReason.SIZE_CONFLICT]: false,
  [ErrorReason.UNSUPPORTED_PARAMETER]: false,
  [ErrorReason.REFERENCE_REFUSED]: false,
  [ErrorReason.NOTHING_TO_SPEAK]: false,
  [ErrorReason.BODY_TOO_LARGE]: false,
  [ErrorReason.MODEL_UNKNOWN]: false,
  [ErrorReason.NO_ENDPOINT_LEFT]: false,
  [ErrorReason.RECORD_UNKNOWN]: false,
  [ErrorReason.ROUTE_UNKNOWN]: false,
  [ErrorReason.CREDITS_EXHAUSTED]: false,
  [ErrorReason.KEY_LIMIT_REACHED]: false,
  [ErrorReason.COUNT_LIMIT_REACHED]: false,
  [ErrorReason.LAST_MANAGEMENT_KEY]: false,
  [ErrorReason.RATE_LIMITED]: true,
  [ErrorReason.TOO_MANY_IN_FLIGHT]: true,
  // Unless every provider said that the request is wrong: see below.
  [ErrorReason.PROVIDER_FAILED]: undefined,
  [ErrorReason.PROVIDER_BAD_ANSWER]: undefined,
  [ErrorReason.CONTENT_POLICY]: false,
  [ErrorReason.PROVIDER_CREDENTIALS]: false,
  [ErrorReason.PROVIDER_OVERLOADED]: true,
  [ErrorReason.SERVICE_UNAVAILABLE]: true,
  // What did not come in time is not charged, so another try pays for itself alone.
  [ErrorReason.TIMED_OUT]: true,
  [ErrorReason.CANCELLED]: true,
  [ErrorReason.OVERLOADED]: true,
};

/** What the header says of an error; undefined where it should not be there. */
export function retryAdvice({
  reason,
  attempts,
}: Pick<DomainError, "reason" | "attempts">): boolean | undefined {
  const isRefusedEverywhere =
    reason === ErrorReason.PROVIDER_FAILED && attempts.length > 0 && attempts.every(isRefusal);
  return isRefusedEverywhere ? false : retryByReason[reason];
}

/** Whether the provider would say the same again: a status of the caller's fault, or a reason that lasts. */
function isRefusal({ reason, providerStatus }: AttemptFailure): boolean {
  const isTheirs = reason === ErrorReason.PROVIDER_FAILED && providerStatus >= 400 && providerStatus < 500;
  return isTheirs || retryByReason[reason] === false;
}
