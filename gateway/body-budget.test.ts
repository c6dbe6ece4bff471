import { expect, test } from "vitest";
import { ErrorReason } from "../gen/media/error/v1/error_reason_pb.ts";
import { BodyBudget } from "./body-budget.ts";

const longMs = 60_000;

test("shares wait for room in their order, small ones behind large ones too", async () => {
  const budget = new BodyBudget(100);
  const first = await budget.reserve(80, longMs);
  const granted: string[] = [];
  const large = budget.reserve(70, longMs).then((share) => {
    granted.push("large");
    return share;
  });
  const small = budget.reserve(10, longMs).then((share) => {
    granted.push("small");
    return share;
  });
  first.shrink(40);
  await Promise.resolve();
  expect(granted).toEqual([]);
  first.release();
  (await large).release();
  (await small).release();
  expect(granted).toEqual(["large", "small"]);
  expect(budget.usedBytes).toBe(0);
});

test("a share gives back what it held once, however often it is released", async () => {
  const budget = new BodyBudget(100);
  const share = await budget.reserve(50, longMs);
  share.shrink(20);
  share.shrink(30);
  expect(budget.usedBytes).toBe(20);
  share.release();
  share.release();
  expect(budget.usedBytes).toBe(0);
});

test("who finds no room in time is refused, and whoever waits behind goes on", async () => {
  const budget = new BodyBudget(100);
  const first = await budget.reserve(80, longMs);
  const refused = budget.reserve(50, 1);
  const fitting = budget.reserve(20, longMs);
  await expect(refused).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
    retryAfterMs: 1000,
  });
  (await fitting).release();
  first.release();
  expect(budget.usedBytes).toBe(0);
});

test("a share larger than the whole budget is one of the whole budget", async () => {
  const budget = new BodyBudget(100);
  const share = await budget.reserve(1000, longMs);
  expect(budget.usedBytes).toBe(100);
  share.release();
  expect(budget.usedBytes).toBe(0);
});
