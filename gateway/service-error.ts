import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";

/** Refusals that, after the key was accepted here, can only mean this process's own token. */
const refusalsOfUs: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.KEY_MISSING,
  ErrorReason.KEY_UNKNOWN,
  ErrorReason.CALLER_NOT_ALLOWED,
]);

/** What a call to a service failed with, as it concerns the caller: a service that refuses this process is `internal`. */
export function fromServiceError(thrown: unknown): DomainError {
  const error = DomainError.from(thrown);
  if (!refusalsOfUs.has(error.reason)) return error;
  const { generationId } = error;
  return new DomainError(ErrorReason.INTERNAL, "a service refused this process", {
    cause: error,
    generationId,
  });
}
