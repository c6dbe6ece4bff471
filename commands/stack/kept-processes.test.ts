import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { KeptProcesses } from "./kept-processes.ts";

/** A process that would run for ever. */
function startEndless() {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1 << 30)"], {
    stdio: "ignore",
    detached: true,
  });
  return { child, ended: once(child, "exit") as Promise<[number | null, NodeJS.Signals | null]> };
}

test("kept processes are killed when their keeper ends, and no others", async () => {
  const kept = new KeptProcesses();
  const [one, two, left] = [startEndless(), startEndless(), startEndless()];
  const letGo = Promise.resolve();
  kept.keep(left.child.pid ?? 0, letGo);
  await letGo;
  kept.keep(one.child.pid ?? 0, one.ended);
  kept.keep(two.child.pid ?? 0, two.ended);
  kept.close();
  expect((await Promise.all([one.ended, two.ended])).map(([, signal]) => signal)).toEqual([
    "SIGKILL",
    "SIGKILL",
  ]);
  expect([left.child.exitCode, left.child.signalCode]).toEqual([null, null]);
  left.child.kill("SIGTERM");
  expect((await left.ended)[1]).toBe("SIGTERM");
});
