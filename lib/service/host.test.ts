import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { type Child, startChild } from "../../test/support/processes/child.ts";

const script = fileURLToPath(new URL("__fixtures__/hosted-process.ts", import.meta.url));

function start(FAULT: string): Child {
  const child = startChild(script, { env: { FAULT } });
  onTestFinished(() => child.kill());
  return child;
}

/** Which parts have ended, in order. */
function endsOf({ lines }: Child): readonly string[] {
  return lines.filter((line) => line.endsWith(" ended"));
}

test("a process ends its parts in the opposite order of their start, and exits 0", async () => {
  const child = start("none");
  await child.line((line) => line.includes("serving"));
  expect(await child.stop()).toBe(0);
  expect(endsOf(child)).toEqual(["second ended", "first ended"]);
});

test("a start that fails ends what has started, and nothing else, and exits 1 with the reason", async () => {
  const child = start("at-start");
  expect(await child.exited).toBe(1);
  expect(endsOf(child)).toEqual(["first ended"]);
  expect(child.lines).toContain("error: Error: broken part");
});

test("a part that can't be ended keeps no other from its end, but the process exits 1", async () => {
  const child = start("at-stop");
  await child.line((line) => line.includes("serving"));
  expect(await child.stop()).toBe(1);
  expect(endsOf(child)).toEqual(["second ended", "first ended"]);
  expect(child.lines.some((line) => line.includes("part that does not end"))).toBe(true);
});

test("a process that can't go on ends its parts and exits 1", async () => {
  const child = start("later");
  await child.line((line) => line.includes("serving"));
  process.kill(child.pid, "SIGUSR2");
  expect(await child.exited).toBe(1);
  expect(endsOf(child)).toEqual(["second ended", "first ended"]);
});
