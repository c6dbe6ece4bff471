import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteBudget, type ByteOwner, type ByteShare } from "./byte-budget.ts";

const options = { maxBytes: 100, maxShareBytes: 20 };
const ownersOf = (key: string, account = key): readonly ByteOwner[] => [
  { name: `key ${key}`, weight: 2 },
  { name: `account ${account}`, weight: 3 },
];
const one = (name: string, weight = 1): readonly ByteOwner[] => [{ name, weight }];
const ignored = () => undefined;

/** Takes ten at a time for as long as there is room at once; the last share waits. */
function fill(budget: ByteBudget, owners: readonly ByteOwner[]): ByteShare[] {
  const shares: ByteShare[] = [];
  for (;;) {
    const share = budget.open(owners);
    shares.push(share);
    if (!share.grow(10, ignored)) return shares;
  }
}

test("an owner who asks without end leaves room for others", () => {
  const budget = new ByteBudget(options);
  fill(budget, ownersOf("greedy"));
  expect(budget.usedBytes).toBeLessThan(options.maxBytes);
  expect(budget.open(ownersOf("other")).grow(10, ignored)).toBe(true);
});

test("an account with many keys leaves room for others", () => {
  const budget = new ByteBudget(options);
  for (let key = 0; key < 50; key += 1) budget.open(ownersOf(`key ${key}`, "greedy")).grow(10, ignored);
  expect(budget.open(ownersOf("other")).grow(10, ignored)).toBe(true);
});

test.for([
  [1, [512, 256, 128, 64]],
  [0.5, [341, 227, 152, 101]],
] as const)("whoever comes next has his part of what is left, with the weight %d", ([weight, parts]) => {
  const budget = new ByteBudget({ maxBytes: 1024, maxShareBytes: 0 });
  const taken = ["a", "b", "c", "d"].map((name) => {
    let bytes = 0;
    while (budget.open(one(name, weight)).grow(1, ignored)) bytes += 1;
    // Nothing is kept for a senior: what one takes beyond its part is one byte.
    return bytes;
  });
  for (const [index, part] of parts.entries()) expect(Math.abs((taken[index] ?? 0) - part)).toBeLessThan(3);
});

test("a single share may have all that is kept for one, whatever its owner holds, and only one", () => {
  const budget = new ByteBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  const senior = shares.find((share) => share.grow(1, ignored));
  expect(senior?.grow(8, ignored)).toBe(true);
  expect(shares.filter((share) => share !== senior && share.grow(1, ignored))).toEqual([]);
});

test("who waits for its own sake holds up nobody else, and goes on when its own have ended", () => {
  const budget = new ByteBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  const waiting = budget.open(ownersOf("greedy"));
  let isGranted = false;
  const hasRoom = waiting.grow(10, () => {
    isGranted = true;
  });
  expect([hasRoom, waiting.waited]).toEqual([false, true]);
  const other = budget.open(ownersOf("other"));
  expect(other.grow(10, ignored)).toBe(true);
  expect([isGranted, other.waited]).toEqual([false, false]);
  for (const share of shares) share.release();
  expect(isGranted).toBe(true);
});

test("who waits is served first come, first served, and large ones are not starved by small ones", () => {
  const budget = new ByteBudget({ maxBytes: 200, maxShareBytes: 100 });
  const order: string[] = [];
  const ask = (name: string, bytes: number) => {
    const share = budget.open(one(name));
    if (share.grow(bytes, () => order.push(name))) order.push(name);
    return share;
  };
  const first = ask("first", 90);
  first.settle(90);
  const [second, third] = [ask("second", 80), ask("third", 70)];
  const small = ["x", "y", "z"].map((name) => ask(name, 20));
  expect(order).toEqual(["first", "x", "y", "z"]);
  for (const share of small) share.release();
  first.release();
  expect(order.slice(4)).toEqual(["second"]);
  second.settle(80);
  second.release();
  expect(order.slice(5)).toEqual(["third"]);
  third.release();
  expect(budget.usedBytes).toBe(0);
});

test("gives back once what a shorter content and an end leave, however often it is released", () => {
  const budget = new ByteBudget(options);
  const share = budget.open(ownersOf("one"));
  share.grow(20, ignored);
  share.settle(15);
  expect([share.bytes, budget.usedBytes]).toEqual([15, 15]);
  share.release();
  share.release();
  expect(budget.usedBytes).toBe(0);
  expect(share.grow(1, ignored)).toBe(false);
});

test("who no longer waits is not granted anything", () => {
  const budget = new ByteBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  const waiting = budget.open(ownersOf("greedy"));
  expect(waiting.grow(10, () => expect.unreachable())).toBe(false);
  expect(waiting.grow(5, () => expect.unreachable())).toBe(false);
  waiting.release();
  for (const share of shares) share.release();
  expect(budget.usedBytes).toBe(0);
});

/** Shares that grow together, each of an owner and to a size, by a few bytes in turn; some fail before their end. */
test("shares that grow together all come to their end, and no owner has more than its part and one share", () => {
  const content = fc.record({
    owner: fc.constantFrom("a", "b", "c"),
    size: fc.integer({ min: 1, max: 20 }),
    step: fc.integer({ min: 1, max: 20 }),
    fails: fc.boolean(),
  });
  const bounds = fc.record({
    maxBytes: fc.integer({ min: 20, max: 60 }),
    weight: fc.constantFrom(0.5, 1, 2),
    heldFor: fc.nat(7),
  });
  fc.assert(
    fc.property(bounds, fc.array(content, { maxLength: 30 }), ({ maxBytes, weight, heldFor }, contents) => {
      const budget = new ByteBudget({ maxBytes, maxShareBytes: 20 });
      const most = (weight / (1 + weight)) * (maxBytes - 20) + 20;
      const growing = contents.map((each) => ({
        ...each,
        share: budget.open(one(each.owner, weight)),
        isWaiting: false,
      }));
      const held: ByteShare[] = [];
      const open = new Set(growing);
      for (let round = 0; open.size > 0; round += 1) {
        expect(round).toBeLessThan(5000);
        for (const state of open) {
          if (state.isWaiting) continue;
          const { share, size, step, fails } = state;
          if (share.bytes === size) {
            open.delete(state);
            if (!fails) share.settle(size);
            held.push(share);
          } else {
            state.isWaiting = !share.grow(Math.min(step, size - share.bytes), () => {
              state.isWaiting = false;
            });
          }
          expect(budget.usedBytes).toBeLessThanOrEqual(maxBytes);
          const ofOwner = growing.filter(({ owner }) => owner === state.owner);
          expect(ofOwner.reduce((sum, { share: { bytes } }) => sum + bytes, 0)).toBeLessThanOrEqual(most);
        }
        // An answer ends only now and then.
        if (round % (heldFor + 1) === 0) held.shift()?.release();
      }
      for (const share of held) share.release();
      expect(budget.usedBytes).toBe(0);
    }),
    { numRuns: 500 },
  );
});
