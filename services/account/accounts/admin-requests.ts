import type { HandlerContext } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { callerKey } from "../../../lib/identity/caller.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { FieldIssues } from "../field-issues.ts";

const defaultPageSize = 100;
const maxPageSize = 1000;

/** Who makes a call with an admin token. Throws `caller_not_allowed` for everyone else. */
export function operatorOf({ values }: Pick<HandlerContext, "values">): string {
  const caller = values.get(callerKey);
  if (caller.kind === "operator") return caller.subject;
  throw new DomainError(ErrorReason.CALLER_NOT_ALLOWED, "this call needs an admin token");
}

/** Checks the form of ids by their paths. Throws `invalid_body`. */
export function checkUuids(ids: Readonly<Record<string, string>>): void {
  const issues = new FieldIssues();
  for (const [path, id] of Object.entries(ids)) issues.checkUuid(path, id);
  issues.throwIfAny();
}

/** How many records a page is to have; 100 unless asked. Throws `invalid_body`. */
export function readPageSize(pageSize = defaultPageSize): number {
  const issues = new FieldIssues();
  issues.checkInteger("page_size", pageSize, 1, maxPageSize);
  issues.throwIfAny();
  return pageSize;
}
