import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteBudget, type ByteShare } from "./byte-budget.ts";

test("one caller gets half, the next half of what is left, and so on: there is room for whoever comes", () => {
  const budget = new ByteBudget(1024);
  const takeAll = (share: ByteShare) => {
    let taken = 0;
    while (share.take(1)) taken += 1;
    return taken;
  };
  const taken = ["a", "b", "c", "d"].map((caller) => takeAll(budget.open(caller)));
  expect(taken).toEqual([512, 256, 128, 64]);
  expect(takeAll(budget.open("a"))).toBe(0);
});

test("what is released is taken by those who wait, first come, first served, as far as they may", () => {
  const budget = new ByteBudget(100);
  const held = budget.open("a");
  expect(held.take(50)).toBe(true);
  const order: string[] = [];
  const wait = (caller: string, bytes: number) => {
    const share = budget.open(caller);
    expect(share.take(bytes)).toBe(false);
    share.takeLater(bytes, () => order.push(caller));
    return share;
  };
  wait("b", 60);
  const left = wait("c", 55);
  wait("d", 51);
  left.release();
  held.release();
  expect(order).toEqual(["b"]);
  expect(budget.usedBytes).toBe(60);
});

test("never gives more than it has, and has all of it back in the end", () => {
  const step = fc.tuple(fc.constantFrom("a", "b", "c"), fc.integer({ min: 1, max: 60 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const budget = new ByteBudget(100);
      const shares = steps.map(([caller, bytes, waits], index) => {
        const share = budget.open(caller);
        if (!share.take(bytes) && waits) share.takeLater(bytes, () => undefined);
        expect(budget.usedBytes).toBeLessThanOrEqual(100);
        if (index % 3 === 0) share.release();
        expect(budget.usedBytes).toBeLessThanOrEqual(100);
        return share;
      });
      for (const share of shares) share.release();
      for (const share of shares) share.release();
      expect(budget.usedBytes).toBe(0);
    }),
  );
});
