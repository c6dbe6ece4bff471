import type { Operation } from "./error-body.ts";

const limitedOperations: ReadonlySet<Operation> = new Set(["speech", "images"]);

/** Whether requests of an operation are limited and may be shed; all else goes on whatever comes. */
export function isLimited(operation: Operation): boolean {
  return limitedOperations.has(operation);
}
