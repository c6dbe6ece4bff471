import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const program = new URL("../../.ci/count-tests.mjs", import.meta.url).pathname;

const passed = { status: "passed", assertionResults: [{ status: "passed" }] };
const failed = { status: "failed", assertionResults: [{ status: "passed" }, { status: "failed" }] };
const unloaded = { status: "failed", assertionResults: [] };

function report(counts: readonly [passed: number, failed: number, skipped: number], testResults: object[]) {
  const [numPassedTests, numFailedTests, numPendingTests] = counts;
  return JSON.stringify({ numPassedTests, numFailedTests, numPendingTests, numTodoTests: 0, testResults });
}

test.for<[string, string | undefined, string | undefined, string]>([
  [
    "both reports count",
    report([5, 1, 2], [passed, failed]),
    report([3, 0, 1], [passed]),
    "8 passed, 1 failed, 3 skipped",
  ],
  [
    "a file that could not be loaded is a failure",
    report([5, 1, 0], [failed]),
    report([3, 0, 0], [passed, unloaded]),
    "8 passed, 2 failed, 0 skipped",
  ],
  [
    "a run without a report is a failure",
    report([5, 0, 0], [passed]),
    undefined,
    "5 passed, 1 failed, 0 skipped",
  ],
  ["half a report is none", report([5, 0, 0], [passed]), '{"numPassed', "5 passed, 1 failed, 0 skipped"],
  ["without any run two failed", undefined, undefined, "0 passed, 2 failed, 0 skipped"],
])("%s", async ([, first, second, line]) => {
  const folder = await mkdtemp(join(tmpdir(), "count-tests-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const paths = ["results.json", "system-results.json"].map((name) => join(folder, name));
  for (const [index, text] of [first, second].entries()) {
    if (text !== undefined) await writeFile(paths[index] ?? "", text);
  }
  const printed = execFileSync(process.execPath, [program, ...paths], { encoding: "utf8" });
  expect(printed.trimEnd().split("\n").at(-1)).toBe(line);
});
