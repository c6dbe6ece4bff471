import { describe, expect, test } from "vitest";
import { waitUntil } from "../../test/support/wait-until.ts";
import { BatchCall, type BatchCallOptions } from "./batch-call.ts";

/** Batches that end when the test says so. */
function batches(options: Partial<BatchCallOptions<number, string>> = {}) {
  const begun: { items: readonly number[]; end: PromiseWithResolvers<readonly string[]> }[] = [];
  const call = new BatchCall<number, string>({
    maxItems: 10,
    maxInFlight: 1,
    run(items) {
      const end = Promise.withResolvers<readonly string[]>();
      begun.push({ items, end });
      return end.promise;
    },
    ...options,
  });
  const finish = (index: number) => begun[index]?.end.resolve(begun[index].items.map(String));
  return { begun, call, finish };
}

describe("a batch", () => {
  test("has what came in one turn of the event loop, in order, and gives each its own result", async () => {
    const { begun, call, finish } = batches();
    const results = [3, 1, 2].map((item) => call.call(item));
    await waitUntil(() => begun.length === 1);
    expect(begun[0]?.items).toEqual([3, 1, 2]);
    finish(0);
    expect(await Promise.all(results)).toEqual(["3", "1", "2"]);
  });

  test("waits for one before it only when all places are taken", async () => {
    const { begun, call, finish } = batches({ maxInFlight: 2 });
    const results: Promise<string>[] = [];
    for (const item of [1, 2, 3, 4]) {
      results.push(call.call(item));
      await new Promise(setImmediate);
    }
    expect(begun.map(({ items }) => items)).toEqual([[1], [2]]);
    finish(1);
    await waitUntil(() => begun.length === 3);
    expect(begun[2]?.items).toEqual([3, 4]);
    finish(0);
    finish(2);
    expect(await Promise.all(results)).toEqual(["1", "2", "3", "4"]);
  });

  test.for<[string, Partial<BatchCallOptions<number, string>>]>([
    ["so many items", { maxItems: 2 }],
    ["so many bytes", { weigh: () => 5, maxWeight: 11 }],
  ])("has at most %s", async ([, options]) => {
    const { begun, call } = batches({ ...options, maxInFlight: 9 });
    for (const item of [1, 2, 3, 4, 5]) void call.call(item);
    await waitUntil(() => begun.length === 3);
    expect(begun.map(({ items }) => items)).toEqual([[1, 2], [3, 4], [5]]);
  });

  test("goes alone with an item over the limit", async () => {
    const { begun, call } = batches({ weigh: (item) => item, maxWeight: 10, maxInFlight: 9 });
    for (const item of [50, 1, 2]) void call.call(item);
    await waitUntil(() => begun.length === 2);
    expect(begun.map(({ items }) => items)).toEqual([[50], [1, 2]]);
  });

  test("that fails fails each of its items, and the next one runs", async () => {
    const { begun, call, finish } = batches();
    const failing = [1, 2].map((item) => call.call(item));
    await waitUntil(() => begun.length === 1);
    const after = call.call(3);
    begun[0]?.end.reject(new Error("away"));
    for (const result of failing) await expect(result).rejects.toThrow("away");
    await waitUntil(() => begun.length === 2);
    finish(1);
    expect(await after).toBe("3");
  });

  test("with another number of results is a failure", async () => {
    const { begun, call } = batches();
    const result = call.call(1);
    await waitUntil(() => begun.length === 1);
    begun[0]?.end.resolve([]);
    await expect(result).rejects.toThrow("not one result for each item");
  });
});
