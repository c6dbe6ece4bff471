import type { CallOptions } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import type { Exchange } from "./exchange.ts";

/**
 * Calls a service for the caller of a request, for as long as the caller waits. Throws DomainError, whose issues name
 * fields as the REST interface does.
 */
export async function callService<T>(
  exchange: Exchange,
  call: (options: CallOptions) => Promise<T>,
  wireNames: WireNames = {},
): Promise<T> {
  try {
    return await call({ signal: exchange.clientGone, contextValues: exchange.callContext() });
  } catch (thrown) {
    throw fromServiceError(thrown, wireNames);
  }
}

/** Refusals that, after the key was accepted here, can only mean this process's own token. */
const refusalsOfUs: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.KEY_MISSING,
  ErrorReason.KEY_UNKNOWN,
  ErrorReason.CALLER_NOT_ALLOWED,
]);

/**
 * What clients of the REST interface call the fields of an RPC that are named otherwise there; `*` stands for an index.
 * What lies within a field goes with it.
 */
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
  const { reason, message, cause, attempts, generationId, retryAfterMs } = error;
  const issues = error.issues.map((issue) => ({ ...issue, path: toWirePath(issue.path, wireNames) }));
  if (issues.every(({ path }, index) => path === error.issues[index]?.path)) return error;
  const rest = { cause, attempts, generationId, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return new DomainError(reason, message, { ...rest, issues });
}

function toWirePath(path: string, wireNames: WireNames): string {
  const parts = path.split(".");
  for (const [field, wireName] of Object.entries(wireNames)) {
    const names = field.split(".");
    const isWithin = names.every(
      (name, at) => name === parts[at] || (name === "*" && /^\d+$/.test(parts[at] ?? "")),
    );
    if (!isWithin) continue;
    const index = parts[names.indexOf("*")] ?? "";
    return [wireName.replace("*", index), ...parts.slice(names.length)].join(".");
  }
  return path;
}
