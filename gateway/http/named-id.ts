import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { isUuid } from "../../lib/runtime/uuid.ts";
import type { Exchange } from "./exchange.ts";

/** The resource that `:id` of the path names. Throws record_unknown, in its `noun`, for what is no UUID. */
export function namedId({ parameters: { id = "" } }: Exchange, noun: string): { readonly id: string } {
  if (!isUuid(id)) throw new DomainError(ErrorReason.RECORD_UNKNOWN, `no such ${noun}`);
  return { id };
}
