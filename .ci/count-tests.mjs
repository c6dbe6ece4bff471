/**
 * Prints one line, "N passed, N failed, N skipped", over the JSON reports that it is given. A report that is missing
 * counts as one failed test, and so does a test file that could not even be loaded.
 */
import { readFileSync } from "node:fs";

const counts = process.argv.slice(2).map(countReport);
const sum = (name) => counts.reduce((total, count) => total + count[name], 0);
process.stdout.write(`${sum("passed")} passed, ${sum("failed")} failed, ${sum("skipped")} skipped\n`);

function countReport(path) {
  let report;
  try {
    report = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    process.stdout.write(`no report ${path}: its tests did not run to their end\n`);
    return { passed: 0, failed: 1, skipped: 0 };
  }
  const unloaded = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === "failed" && !assertionResults.some((result) => result.status === "failed"),
  ).length;
  return {
    passed: report.numPassedTests,
    failed: report.numFailedTests + unloaded,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
