import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { DecodeBudget } from "./decode-budget.ts";

const never = new AbortController().signal;

/** Jobs of one budget that end when told to; the first letter of a name is the job's key. */
function jobsOf(budget: DecodeBudget) {
  const begun: string[] = [];
  const ends = new Map<string, { resolve(value: string): void; reject(error: Error): void }>();
  const start = (name: string, bytes: number, signal = never): Promise<string> =>
    budget.of(name.slice(0, 1)).run(bytes, signal, () => {
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

const budgetOf = (maxBytes: number, maxJobs = 9) => new DecodeBudget({ maxBytes, maxJobs });

describe("a budget of decoding", () => {
  test("runs the jobs of a key side by side within its share, then in their order", async () => {
    const { begun, start, end, settle } = jobsOf(budgetOf(200));
    const results = Promise.all([start("a1", 40), start("a2", 40), start("a3", 100), start("a4", 10)]);
    await settle();
    // a4 would fit, but must not keep the big one waiting.
    expect(begun).toEqual(["a1", "a2"]);
    await end("a2");
    expect(begun).toEqual(["a1", "a2"]);
    await end("a1");
    expect(begun).toEqual(["a1", "a2", "a3"]);
    await end("a3");
    expect(begun).toEqual(["a1", "a2", "a3", "a4"]);
    await end("a4");
    expect(await results).toEqual(["a1", "a2", "a3", "a4"]);
  });

  test("has room at once for another key, however many jobs one key has", async () => {
    const { begun, start, settle } = jobsOf(new DecodeBudget());
    for (let index = 0; index < 16; index++) void start(`a${index}`, 1e9);
    void start("b", 1e6);
    await settle();
    expect(begun).toEqual(["a0", "b"]);
  });

  test("leaves a job to others where all are small", async () => {
    const { begun, start, end, settle } = jobsOf(new DecodeBudget());
    for (let index = 0; index < 16; index++) void start(`a${index}`, 1);
    void start("b1", 1);
    void start("b2", 1);
    await settle();
    expect(begun).toEqual(["a0", "a1", "b1"]);
    // Turns, not the order of coming.
    await end("a0");
    expect(begun).toEqual(["a0", "a1", "b1", "a2"]);
    await end("a1");
    expect(begun).toEqual(["a0", "a1", "b1", "a2", "b2"]);
  });

  test("lets nobody overtake the job whose turn it is where there is no room in all", async () => {
    const { begun, start, end, settle } = jobsOf(budgetOf(200));
    void start("a", 100);
    void start("b", 50);
    void start("c", 100);
    void start("d", 1);
    await settle();
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "c"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "c", "d"]);
  });

  test("runs a job that is larger than a share alone of its key", async () => {
    const { begun, start, end, settle } = jobsOf(budgetOf(200));
    void start("a1", 1000);
    void start("a2", 1);
    await settle();
    expect(begun).toEqual(["a1"]);
    await end("a1");
    expect(begun).toEqual(["a1", "a2"]);
  });

  test("gives back the room of a job that fails, at once or later", async () => {
    const budget = budgetOf(200, 1);
    const { start, fail, end, settle } = jobsOf(budget);
    const later = start("later", 100);
    await settle();
    await Promise.all([expect(later).rejects.toThrow("later"), fail("later")]);
    const atOnce = () => {
      throw new Error("at once");
    };
    await expect(budget.of("l").run(100, never, atOnce)).rejects.toThrow("at once");
    const next = start("next", 100);
    await settle();
    await end("next");
    expect(await next).toBe("next");
  });

  test("lets an aborted job go: unbegun, waiting or running", async () => {
    const { begun, start, end, settle } = jobsOf(budgetOf(200));
    const reason = new Error("gone");
    await expect(start("a1", 1, AbortSignal.abort(reason))).rejects.toBe(reason);
    const controllers = { running: new AbortController(), waiting: new AbortController() };
    const running = start("a2", 100, controllers.running.signal);
    const waiting = start("a3", 100, controllers.waiting.signal);
    void start("a4", 50);
    await settle();
    controllers.waiting.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    controllers.running.abort(reason);
    await expect(running).rejects.toBe(reason);
    await settle();
    // Its work can't be stopped and still takes up its room.
    expect(begun).toEqual(["a2"]);
    await end("a2");
    expect(begun).toEqual(["a2", "a4"]);
  });

  test("never runs more than fits, of all or of a key, and everything in the end", async () => {
    const job = fc.record({
      key: fc.constantFrom("a", "b", "c"),
      bytes: fc.integer({ min: 0, max: 150 }),
      aborts: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(job, { maxLength: 30 }), async (jobs) => {
        const budget = budgetOf(200, 3);
        const running = new Set<number>();
        const taken = (key?: string) =>
          [...running]
            .flatMap((index) => jobs[index] ?? [])
            .filter((other) => key === undefined || other.key === key)
            .map(({ bytes }) => Math.min(bytes, 100));
        const sum = (sizes: number[]) => sizes.reduce((total, size) => total + size, 0);
        const results = jobs.map(({ key, bytes, aborts }, index) => {
          const controller = new AbortController();
          const result = budget.of(key).run(bytes, controller.signal, async () => {
            running.add(index);
            expect(running.size).toBeLessThanOrEqual(3);
            expect(taken(key).length).toBeLessThanOrEqual(2);
            expect(sum(taken())).toBeLessThanOrEqual(200);
            expect(sum(taken(key))).toBeLessThanOrEqual(100);
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
        const whole = ["a", "b"].map((key) => budget.of(key).run(100, never, async () => key));
        expect(await Promise.all(whole)).toEqual(["a", "b"]);
      }),
    );
  });
});
