import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PixelBudget } from "./pixel-budget.ts";

const never = new AbortController().signal;

/** Jobs of one budget that end when told to. */
function jobsOf(budget: PixelBudget) {
  const begun: string[] = [];
  const ends = new Map<string, { resolve(value: string): void; reject(error: Error): void }>();
  const start = (name: string, pixels: number, signal = never): Promise<string> =>
    budget.run(pixels, signal, () => {
      begun.push(name);
      const { promise, resolve, reject } = Promise.withResolvers<string>();
      ends.set(name, { resolve, reject });
      return promise;
    });
  /** Lets everything that can go on go on. */
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));
  const end = async (name: string) => {
    ends.get(name)?.resolve(name);
    await settle();
  };
  const fail = async (name: string) => {
    ends.get(name)?.reject(new Error(name));
    await settle();
  };
  return { begun, start, end, fail, settle };
}

describe("a budget of pixels", () => {
  test("runs jobs side by side while there is room, then in their order", async () => {
    const { begun, start, end, settle } = jobsOf(new PixelBudget(100, 3));
    const results = Promise.all([
      start("a", 40),
      start("b", 40),
      start("big", 100),
      start("d", 10),
      start("e", 1),
    ]);
    await settle();
    // d would fit, but must not keep the big one waiting.
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "big"]);
    await end("big");
    expect(begun).toEqual(["a", "b", "big", "d", "e"]);
    await end("e");
    await end("d");
    expect(await results).toEqual(["a", "b", "big", "d", "e"]);
  });

  test("runs no more jobs than it may, however small", async () => {
    const { begun, start, end, settle } = jobsOf(new PixelBudget(100, 2));
    for (const name of ["a", "b", "c"]) void start(name, 1);
    await settle();
    expect(begun).toEqual(["a", "b"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "c"]);
  });

  test("runs a job that is larger than all of it alone", async () => {
    const { begun, start, end, settle } = jobsOf(new PixelBudget(100));
    void start("huge", 1000);
    void start("b", 1);
    await settle();
    expect(begun).toEqual(["huge"]);
    await end("huge");
    expect(begun).toEqual(["huge", "b"]);
  });

  test("gives back the room of a job that fails, at once or later", async () => {
    const budget = new PixelBudget(100, 1);
    const { start, fail, end, settle } = jobsOf(budget);
    const later = start("later", 100);
    await settle();
    await Promise.all([expect(later).rejects.toThrow("later"), fail("later")]);
    const atOnce = () => {
      throw new Error("at once");
    };
    await expect(budget.run(100, never, atOnce)).rejects.toThrow("at once");
    const next = start("next", 100);
    await settle();
    await end("next");
    expect(await next).toBe("next");
  });

  test("lets an aborted job go: unbegun, waiting or running", async () => {
    const { begun, start, end, settle } = jobsOf(new PixelBudget(100));
    const reason = new Error("gone");
    await expect(start("unbegun", 1, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controllers = { running: new AbortController(), waiting: new AbortController() };
    const running = start("running", 100, controllers.running.signal);
    const waiting = start("waiting", 100, controllers.waiting.signal);
    void start("last", 50);
    await settle();
    controllers.waiting.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    controllers.running.abort(reason);
    await expect(running).rejects.toBe(reason);
    await settle();
    // Its work can't be stopped and still takes up its room.
    expect(begun).toEqual(["running"]);
    await end("running");
    expect(begun).toEqual(["running", "last"]);
  });

  test("never runs more than fits, and everything in the end", async () => {
    const job = fc.record({ pixels: fc.integer({ min: 0, max: 150 }), aborts: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(fc.array(job, { maxLength: 30 }), async (jobs) => {
        const budget = new PixelBudget(100, 3);
        const running = new Set<number>();
        const results = jobs.map(({ pixels, aborts }, index) => {
          const controller = new AbortController();
          const result = budget.run(pixels, controller.signal, async () => {
            running.add(index);
            const sizes = [...running].map((other) => Math.min(jobs[other]?.pixels ?? 0, 100));
            expect(running.size).toBeLessThanOrEqual(3);
            expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(100);
            await new Promise((resolve) => setImmediate(resolve));
            running.delete(index);
          });
          if (aborts) controller.abort();
          return result;
        });
        const outcomes = await Promise.allSettled(results);
        expect(outcomes.map(({ status }) => status)).toEqual(
          jobs.map(({ aborts }) => (aborts ? "rejected" : "fulfilled")),
        );
        // All room is free again, once the aborted jobs that were running have ended.
        expect(await Promise.all([1, 2, 3].map((n) => budget.run(33, never, async () => n)))).toEqual([
          1, 2, 3,
        ]);
        expect(await budget.run(100, never, async () => "all")).toBe("all");
      }),
    );
  });
});
