import { expect, test } from "vitest";
import { hoursUntil } from "./hours-until.ts";

test("hours without requests have their place, and each request stands in its hour", () => {
  const counted = [{ starts_at: "2026-03-01T10:00:00Z", requests: 5, errors: 2 }];
  const points = hoursUntil(new Date("2026-03-01T11:59:59Z"), counted);
  expect(points.map(({ at }) => at)).toHaveLength(48);
  expect(points.slice(-2)).toEqual([
    { at: "2026-03-01T10:00:00.000Z", values: { served: 3, errors: 2 } },
    { at: "2026-03-01T11:00:00.000Z", values: { served: 0, errors: 0 } },
  ]);
});
