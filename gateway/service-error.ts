import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../lib/runtime/domain-error.ts";

/** Refusals that, after the key was accepted here, can only mean this process's own token. */
const refusalsOfUs: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.KEY_MISSING,
  ErrorReason.KEY_UNKNOWN,
  ErrorReason.CALLER_NOT_ALLOWED,
]);

/** What clients of the REST interface call the fields of an RPC that are named otherwise there. */
export type WireNames = Readonly<Record<string, string>>;

/**
 * What a call to a service failed with, as it concerns the caller: a service that refuses this process is `internal`,
 * and issues name fields as the REST interface does.
 */
export function fromServiceError(thrown: unknown, wireNames: WireNames = {}): DomainError {
  const error = DomainError.from(thrown);
  if (!refusalsOfUs.has(error.reason)) return withWireNames(error, wireNames);
  const { generationId } = error;
  return new DomainError(ErrorReason.INTERNAL, "a service refused this process", {
    cause: error,
    generationId,
  });
}

function withWireNames(error: DomainError, wireNames: WireNames): DomainError {
  const { reason, message, issues, cause, generationId } = error;
  const isRenamed = (path: string) => Object.hasOwn(wireNames, path);
  if (!issues.some(({ path }) => isRenamed(path))) return error;
  const renamed = issues.map((issue) => ({
    ...issue,
    path: isRenamed(issue.path) ? (wireNames[issue.path] ?? "") : issue.path,
  }));
  return new DomainError(reason, message, { cause, issues: renamed, generationId });
}
