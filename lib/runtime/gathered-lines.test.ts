import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Child, startChild } from "../../test/support/processes/child.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { gatheredLines } from "./log.ts";

/** What the stream that writes calls: not a copy of its members, as an import would be. */
const nodeFs: typeof import("node:fs") = createRequire(import.meta.url)("node:fs");
const script = fileURLToPath(new URL("__fixtures__/dying-process.ts", import.meta.url));
/** More than one write takes. */
const many = 500;

/** Lines into a file, and what has been written to it. */
function scene() {
  const folder = mkdtempSync(join(tmpdir(), "lines-"));
  const path = join(folder, "log");
  const descriptor = openSync(path, "a");
  const write = vi.spyOn(nodeFs, "write");
  onTestFinished(() => {
    write.mockRestore();
    closeSync(descriptor);
    rmSync(folder, { recursive: true });
  });
  const writes = () => write.mock.calls.filter(([to]) => to === descriptor).length;
  return { lines: gatheredLines(descriptor), writes, text: () => readFileSync(path, "utf8") };
}

/** The numbers of the lines that a process said. One that was being written when it ended may come behind its followers. */
function saidBy(child: Child): number[] {
  const said = child.lines.filter((line) => line.includes('"said"'));
  return said.map((line) => (JSON.parse(line) as { line: number }).line).sort((a, b) => a - b);
}

test("the first line is written at once, what comes within a moment of it together, in order", async () => {
  const { lines, writes, text } = scene();
  lines.write("0\n");
  expect(writes()).toBe(1);
  for (let line = 1; line < 50; line++) lines.write(`${line}\n`);
  await waitUntil(() => text().endsWith("\n49\n"));
  expect(writes()).toBe(2);
  expect(text()).toBe(Array.from({ length: 50 }, (_, line) => `${line}\n`).join(""));
});

test("much is written before its moment is over", () => {
  const { lines, text } = scene();
  const line = `${"x".repeat(1023)}\n`;
  for (let count = 0; count < 64; count++) lines.write(line);
  lines.flushSync();
  expect(text().length).toBeGreaterThan(0);
  expect(text().length % line.length).toBe(0);
});

test.for([
  ["exit", 3],
  ["throw", 1],
  ["reject", 1],
  ["return", 0],
] as const)("a process that ends by %s has written all that it said", async ([end, code]) => {
  const child = startChild(script, { env: { END: end, LINES: String(many) } });
  expect(await child.exited).toBe(code);
  expect(saidBy(child)).toEqual(Array.from({ length: many }, (_, line) => line));
});

test("a process that is told to end has written all", async () => {
  const child = startChild(script, { env: { LINES: String(many) } });
  await child.line((line) => line.includes(`"line":${many - 1},`));
  expect(await child.stop()).toBe(0);
  expect(saidBy(child)).toHaveLength(2 * many);
  expect(child.lines.some((line) => line.includes("told to end"))).toBe(true);
});

test("what a process that is killed said before the last moment stands", async () => {
  const child = startChild(script, { env: { LINES: String(many) } });
  await child.line((line) => line.includes(`"line":${many - 1},`));
  await child.kill();
  expect(saidBy(child)).toHaveLength(many);
});
