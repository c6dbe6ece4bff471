import { expect, test } from "vitest";
import { RunningGenerations } from "./running-generations.ts";

test("generations are counted until they have settled, however they do", async () => {
  const running = new RunningGenerations();
  const [one, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  running.add(one.promise);
  running.add(other.promise);
  expect(running.count).toBe(2);
  let ended = false;
  const waiting = running.ended(60_000).then(() => {
    ended = true;
  });
  one.resolve();
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect([running.count, ended]).toEqual([1, false]);
  other.reject(new Error("failed"));
  await waiting;
  expect(running.count).toBe(0);
});

test("one that begins while others are waited for is waited for, too", async () => {
  const running = new RunningGenerations();
  const [one, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  running.add(one.promise);
  let ended = false;
  const waiting = running.ended(60_000).then(() => {
    ended = true;
  });
  running.add(late.promise);
  one.resolve();
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect(ended).toBe(false);
  late.resolve();
  await waiting;
});

test("the wait has its limit", async () => {
  const running = new RunningGenerations();
  running.add(new Promise(() => undefined));
  await running.ended(1);
  expect(running.count).toBe(1);
  await new RunningGenerations().ended(60_000);
});
