import { FieldIssues } from "../field-issues.ts";

const defaultPageSize = 100;
const maxPageSize = 1000;

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
