import fc from "fast-check";
import { expect, test } from "vitest";
import { retryDelayMs } from "./deliveries.ts";
import { defaultDeliveryLimits as limits } from "./delivery-limits.ts";

const pauseOf = (failures: number, random: number, retryAfterMs?: number) =>
  retryDelayMs({ limits, failures, retryAfterMs, random: () => random });

test("the pause doubles up to its bound, and half of it is chance", () => {
  const longest = [1, 2, 3, 4, 9, 10, 1000].map((failures) => pauseOf(failures, 1));
  expect(longest).toEqual([1000, 2000, 4000, 8000, 256_000, 300_000, 300_000]);
  expect(pauseOf(3, 0)).toBe(2000);
});

test("a receiver is never asked again before the time that it named, within reason", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1e9 }),
      fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
      fc.option(fc.integer({ min: 0, max: 10 * limits.maxRetryAfterMs }), { nil: undefined }),
      (failures, random, retryAfterMs) => {
        const ms = pauseOf(failures, random, retryAfterMs);
        expect(ms).toBeGreaterThanOrEqual(Math.min(retryAfterMs ?? 0, limits.maxRetryAfterMs));
        expect(ms).toBeGreaterThanOrEqual(limits.firstRetryMs / 2);
        expect(ms).toBeLessThanOrEqual(limits.maxRetryAfterMs);
        if (retryAfterMs === undefined) expect(ms).toBeLessThanOrEqual(limits.maxRetryMs);
      },
    ),
  );
});
