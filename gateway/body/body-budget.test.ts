import fc from "fast-check";
import { expect, test } from "vitest";
import { BodyBudget, type BodyOwner, type BodyShare } from "./body-budget.ts";

const options = { maxBytes: 100, maxBodyBytes: 20 };
const ownersOf = (key: string, account = key): readonly BodyOwner[] => [
  { name: `key ${key}`, weight: 2 },
  { name: `account ${account}`, weight: 3 },
];
const ignored = () => undefined;

/** Takes ten at a time for as long as there is room at once. */
function fill(budget: BodyBudget, owners: readonly BodyOwner[]): BodyShare[] {
  const shares: BodyShare[] = [];
  for (;;) {
    const share = budget.open(owners);
    if (!share.grow(10, ignored)) return [...shares, share];
    shares.push(share);
  }
}

test("an owner who asks without end leaves room for others", () => {
  const budget = new BodyBudget(options);
  fill(budget, ownersOf("greedy"));
  expect(budget.usedBytes).toBeLessThan(options.maxBytes);
  expect(budget.open(ownersOf("other")).grow(10, ignored)).toBe(true);
});

test("an account with many keys leaves room for others", () => {
  const budget = new BodyBudget(options);
  for (let key = 0; key < 50; key += 1) budget.open(ownersOf(`key ${key}`, "greedy")).grow(10, ignored);
  expect(budget.open(ownersOf("other")).grow(10, ignored)).toBe(true);
});

test("a single body may have all that is set aside for one, whatever its owner holds", () => {
  const budget = new BodyBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  const finisher = shares.find((share) => share.grow(1, ignored));
  expect(finisher?.grow(8, ignored)).toBe(true);
  expect(shares.filter((share) => share !== finisher && share.grow(1, ignored))).toEqual([]);
});

test("who waits for its own sake holds up nobody else, and goes on when its own have ended", () => {
  const budget = new BodyBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  let isGranted = false;
  expect(
    budget.open(ownersOf("greedy")).grow(10, () => {
      isGranted = true;
    }),
  ).toBe(false);
  const other = budget.open(ownersOf("other"));
  expect(other.grow(10, ignored)).toBe(true);
  expect(isGranted).toBe(false);
  for (const share of shares) share.release();
  expect(isGranted).toBe(true);
});

test("a share gives back what it held once, however often it is released", () => {
  const budget = new BodyBudget(options);
  const share = budget.open(ownersOf("one"));
  share.grow(20, ignored);
  share.settle(15);
  expect(budget.usedBytes).toBe(15);
  share.release();
  share.release();
  expect(budget.usedBytes).toBe(0);
});

test("who no longer waits is not granted anything", () => {
  const budget = new BodyBudget(options);
  const shares = fill(budget, ownersOf("greedy"));
  const waiting = budget.open(ownersOf("greedy"));
  expect(waiting.grow(10, () => expect.unreachable())).toBe(false);
  waiting.release();
  for (const share of shares) share.release();
  expect(budget.usedBytes).toBe(0);
});

/** Bodies that come together, each of an owner and of a size, and read one byte in turn. */
test("bodies that arrive together all come to their end", () => {
  const body = fc.record({ owner: fc.constantFrom("a", "b", "c"), size: fc.integer({ min: 1, max: 20 }) });
  const sizes = fc.record({ maxBytes: fc.integer({ min: 20, max: 60 }), maxBodyBytes: fc.constant(20) });
  fc.assert(
    fc.property(sizes, fc.array(body, { maxLength: 30 }), fc.nat(7), (limits, bodies, heldFor) => {
      const budget = new BodyBudget(limits);
      const arriving = bodies.map(({ owner, size }) => {
        const state = { share: budget.open(ownersOf(owner)), isWaiting: false, size };
        return state;
      });
      const held: BodyShare[] = [];
      const open = new Set(arriving);
      for (let round = 0; open.size > 0; round += 1) {
        expect(round).toBeLessThan(5000);
        for (const state of open) {
          if (state.isWaiting) continue;
          if (state.share.bytes === state.size) {
            open.delete(state);
            state.share.settle(state.size);
            held.push(state.share);
          } else {
            state.isWaiting = !state.share.grow(1, () => {
              state.isWaiting = false;
            });
          }
          expect(budget.usedBytes).toBeLessThanOrEqual(limits.maxBytes);
        }
        // An answer ends only now and then.
        if (round % (heldFor + 1) === 0) held.shift()?.release();
      }
      for (const share of held) share.release();
      expect(budget.usedBytes).toBe(0);
    }),
  );
});
