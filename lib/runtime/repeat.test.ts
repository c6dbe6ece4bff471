import { expect, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { createLog, silentLog } from "./log.ts";
import { repeat } from "./repeat.ts";

const longMs = 3_600_000;

test("goes on at once while there is more to do, one part at a time, and rests then", async () => {
  let left = 5;
  let most = 0;
  let running = 0;
  const task = repeat({
    name: "count",
    async run() {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      return --left > 0;
    },
    pauseMs: longMs,
    log: silentLog,
  });
  await waitUntil(() => left === 0);
  await task.stop();
  expect([left, most]).toEqual([0, 1]);
});

test("goes on after failures, and reports the first and the end of them", async () => {
  const lines: { level: string; task: string }[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line)) };
  let runs = 0;
  const task = repeat({
    name: "stumble",
    async run() {
      runs += 1;
      if (runs < 4) throw new Error("away");
      return false;
    },
    pauseMs: 1,
    log: createLog({ name: "account", level: "info", destination }),
  });
  await waitUntil(() => runs > 5);
  await task.stop();
  expect(lines).toMatchObject([
    { level: "warn", task: "stumble" },
    { level: "info", task: "stumble" },
  ]);
});

test("is told to stop, ends its part, and does no other", async () => {
  const part = Promise.withResolvers<boolean>();
  let runs = 0;
  let signal: AbortSignal | undefined;
  const task = repeat({
    name: "wait",
    run(given) {
      runs += 1;
      signal = given;
      return part.promise;
    },
    pauseMs: 1,
    log: silentLog,
  });
  let stopped = false;
  const stopping = task.stop().then(() => {
    stopped = true;
  });
  await new Promise(setImmediate);
  expect([stopped, signal?.aborted]).toEqual([false, true]);
  part.resolve(true);
  await stopping;
  expect(runs).toBe(1);
});
