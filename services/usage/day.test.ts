import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays, dayNumber, dayNumberOfMs, dayOfMs, isDay, startOfDayMs } from "./day.ts";

test.for([
  ["1970-01-01", true],
  ["2028-02-29", true],
  ["9999-12-31", true],
  ["2030-02-29", false],
  ["2030-02-30", false],
  ["2030-13-01", false],
  ["2030-00-10", false],
  ["1969-12-31", false],
  ["2030-1-1", false],
  ["2030-01-01T00:00:00Z", false],
  ["02030-01-01", false],
  ["today", false],
  ["", false],
] as const)("%s is a day: %s", ([text, is]) => {
  expect(isDay(text)).toBe(is);
});

test("a day begins and ends at midnight UTC", () => {
  const midnight = Date.UTC(2030, 0, 2);
  expect([dayOfMs(midnight - 1), dayOfMs(midnight)]).toEqual(["2030-01-01", "2030-01-02"]);
  expect(startOfDayMs("2030-01-02")).toBe(midnight);
  expect(addDays("2030-03-01", -1)).toBe("2030-02-28");
});

test("days, their numbers and their instants agree", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 253_402_300_799_999 }),
      fc.integer({ min: 0, max: 60 }),
      (ms, days) => {
        const day = dayOfMs(ms);
        expect(isDay(day)).toBe(true);
        expect(dayNumber(day)).toBe(dayNumberOfMs(ms));
        fc.pre(ms < 253_000_000_000_000);
        expect(dayNumber(addDays(day, days))).toBe(dayNumber(day) + days);
        expect(addDays(addDays(day, days), -days)).toBe(day);
      },
    ),
  );
});
