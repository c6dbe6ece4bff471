import { expect, test } from "vitest";
import { RetryPause } from "./retry-pause.ts";

test("pauses grow up to their bound and begin anew after a success", () => {
  const pause = new RetryPause(10, 35);
  expect(pause.failing).toBe(false);
  expect([1, 2, 3, 4].map(() => pause.next())).toEqual([10, 20, 35, 35]);
  expect(pause.failing).toBe(true);
  pause.reset();
  expect([pause.failing, pause.next()]).toEqual([false, 10]);
});

test("a pause ends in its time, or with the signal", async () => {
  const ended: string[] = [];
  const giveUp = new AbortController();
  const long = new RetryPause(1_000_000, 1_000_000).wait(giveUp.signal).then(() => ended.push("long"));
  await new RetryPause(1, 1).wait();
  await new RetryPause(1_000_000, 1_000_000).wait(AbortSignal.abort());
  expect(ended).toEqual([]);
  giveUp.abort();
  await long;
  expect(ended).toEqual(["long"]);
});
