import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ReferenceBudget, type ReferenceShare } from "./reference-budget.ts";

const never = new AbortController().signal;
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Takes, and tells whether it has had room. */
function taking(share: ReferenceShare, bytes: number, signal = never) {
  const state = { in: false, failed: undefined as unknown };
  share.take(bytes, signal).then(
    () => {
      state.in = true;
    },
    (thrown: unknown) => {
      state.failed = thrown;
    },
  );
  return state;
}

const budgetOf = (maxBytes: number, maxRequestBytes: number) =>
  new ReferenceBudget({ maxBytes, maxRequestBytes });

describe("a budget of references", () => {
  test("gives one key no more than half, and others room meanwhile", async () => {
    const budget = budgetOf(200, 40);
    const shares = Array.from({ length: 12 }, () => budget.open("a"));
    const states = shares.map((share) => taking(share, 20));
    await settle();
    const inside = states.filter((state) => state.in).length;
    expect(inside).toBeGreaterThan(1);
    expect(budget.usedBytes).toBe(inside * 20);
    expect(budget.usedBytes).toBeLessThanOrEqual(100);
    const other = budget.open("b");
    await other.take(40, never);
    expect(other.waited).toBe(false);
  });

  test("is first come, first served between keys, also for large pieces", async () => {
    const budget = budgetOf(200, 50);
    const [a, b, c, d] = ["a", "b", "c", "d"].map((key) => budget.open(key)) as [
      ReferenceShare,
      ReferenceShare,
      ReferenceShare,
      ReferenceShare,
    ];
    await a.take(50, never);
    await b.take(50, never);
    await c.take(40, never);
    a.loaded(50);
    b.loaded(50);
    await d.take(5, never);
    // 55 are left, of which 10 are kept for c.
    const [large, small] = [taking(budget.open("e"), 50), taking(budget.open("f"), 1)];
    await settle();
    expect([large.in, small.in]).toEqual([false, false]);
    const more = taking(c, 10);
    await settle();
    expect(more.in).toBe(true);
    expect([large.in, small.in]).toEqual([false, false]);
    a.release();
    await settle();
    expect([large.in, small.in]).toEqual([true, true]);
  });

  test("takes back what an aborted wait, a shorter content and an end leave", async () => {
    const budget = budgetOf(100, 50);
    const share = budget.open("a");
    await share.take(50, never);
    const controller = new AbortController();
    const waiting = taking(budget.open("a"), 10, controller.signal);
    const reason = new Error("gone");
    controller.abort(reason);
    await settle();
    expect(waiting).toEqual({ in: false, failed: reason });
    share.loaded(30);
    expect(budget.usedBytes).toBe(30);
    share.release();
    share.release();
    expect(budget.usedBytes).toBe(0);
  });

  test("gives nothing to a wait whose share has been given back", async () => {
    const budget = budgetOf(100, 50);
    const [first, second] = [budget.open("a"), budget.open("a")];
    await first.take(50, never);
    const waiting = taking(second, 10);
    second.release();
    first.release();
    await settle();
    expect(waiting.in).toBe(false);
    expect(budget.usedBytes).toBe(0);
    await expect(second.take(1, never)).rejects.toThrow("takes no more");
  });

  test("must hold two requests", () => {
    expect(() => budgetOf(99, 50)).toThrow(RangeError);
  });

  test("is never exceeded, locks nobody out and is whole again in the end", async () => {
    const request = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      pieces: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 8 }),
      /** Turns of the event loop between two pieces, and for which what is loaded is held. */
      pace: fc.nat(3),
      held: fc.nat(5),
      fails: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 25 }), async (requests) => {
        const [maxBytes, maxRequestBytes] = [160, 60];
        const budget = budgetOf(maxBytes, maxRequestBytes);
        const held = new Map<string, number>();
        const hold = (key: string, bytes: number) => {
          held.set(key, (held.get(key) ?? 0) + bytes);
          expect(held.get(key)).toBeLessThanOrEqual(maxBytes / 2);
          expect([...held.values()].reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(maxBytes);
        };
        // Ends without any deadline: whoever waits is let in by others that end.
        await Promise.all(
          requests.map(async ({ key, pieces, pace, held: turns, fails }) => {
            const share = budget.open(key);
            let taken = 0;
            for (const piece of pieces) {
              if (taken + piece > maxRequestBytes) break;
              await share.take(piece, never);
              hold(key, piece);
              taken += piece;
              for (let turn = 0; turn < pace; turn++) await settle();
            }
            if (!fails) share.loaded(taken);
            for (let turn = 0; turn < turns; turn++) await settle();
            hold(key, -taken);
            share.release();
          }),
        );
        expect(budget.usedBytes).toBe(0);
      }),
    );
  });
});
