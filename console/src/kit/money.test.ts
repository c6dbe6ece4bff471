import { expect, test } from "vitest";
import { decimalUsd, formatUsd, nanoUsdOf } from "./money.ts";

test.for([
  [0, "0", "$0.00"],
  [15, "15", "$15.00"],
  [0.1, "0.1", "$0.10"],
  [1e-9, "0.000000001", "$0.000000001"],
  [1.5e-7, "0.00000015", "$0.00000015"],
  [-2.5, "-2.5", "-$2.50"],
  [1234567.123456789, "1234567.123456789", "$1,234,567.123456789"],
  [1e21, "1000000000000000000000", "$1,000,000,000,000,000,000,000.00"],
] as const)("%d USD is told exactly", ([usd, decimal, shown]) => {
  expect([decimalUsd(nanoUsdOf(usd)), formatUsd(nanoUsdOf(usd))]).toEqual([decimal, shown]);
});

test("sums are exact where those of numbers are not", () => {
  const thirty = Array.from({ length: 30 }, () => nanoUsdOf(0.1)).reduce((sum, one) => sum + one, 0n);
  expect(decimalUsd(thirty)).toBe("3");
});

test("what is no amount is none", () => {
  expect(() => nanoUsdOf(Number.NaN)).toThrow(RangeError);
});
