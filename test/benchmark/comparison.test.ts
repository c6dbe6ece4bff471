import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("../../bench/bench.ts", import.meta.url));

interface Ended {
  readonly code: number | string;
  readonly printed: string;
  readonly noted: string;
}

function compareQuickly(signal: AbortSignal): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [program, "--quick", "--compare"], { signal }, (error, printed, noted) => {
      resolve({ code: error?.code ?? 0, printed, noted });
    });
  });
}

// Measured beside a plain proxy; what a machine's other work may still do to it is not likely to happen twice.
test("no ratio is worse by more than half than in the checked-in result", {
  retry: 1,
  timeout: 600_000,
}, async ({ signal }) => {
  const { code, printed, noted } = await compareQuickly(signal);
  process.stdout.write(printed);
  expect(printed.split("\n").filter((line) => line.startsWith("worse: "))).toEqual([]);
  expect(code, noted).toBe(0);
  expect(printed).toContain("speech burst");
});
