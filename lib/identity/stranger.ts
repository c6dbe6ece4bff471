import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { ReadHeader } from "../runtime/client-address.ts";
import { DomainError } from "../runtime/domain-error.ts";

/** Where requests come from for which no good key vouches yet. */
export interface Stranger {
  /** Counts one such request. Throws `rate_limited` when there were too many. */
  count(): void;
  /** Takes back one that was counted: its key turned out to be a good one. */
  forgive(): void;
}

/** Knows strangers by the address of a connection and what its proxies say; undefined for calls within the process. */
export interface Strangers {
  at(peer: string | undefined, header: ReadHeader): Stranger | undefined;
}

/**
 * What a request is answered that was refused for its stranger: where requests are limited that they are too many,
 * elsewhere that its key is missing or unknown, whatever the key is. All other errors stay as they are.
 */
export function strangerRefusal(
  thrown: unknown,
  credential: string | undefined,
  isLimited: boolean,
): unknown {
  if (!(thrown instanceof DomainError) || thrown.reason !== ErrorReason.RATE_LIMITED || isLimited)
    return thrown;
  return credential === undefined
    ? new DomainError(ErrorReason.KEY_MISSING, "this needs an API key")
    : new DomainError(ErrorReason.KEY_UNKNOWN, "too many unknown keys came from here");
}
