import { expect, test } from "vitest";
import { usdOf } from "./usd-input.ts";

test.for([
  ["5", 5],
  [" $ 0.10 ", 0.1],
  ["0.000000001", 1e-9],
  ["007.50", 7.5],
  ["1234567.123456789", 1234567.123456789],
] as const)("%s is an amount", ([typed, usd]) => {
  expect(usdOf(typed)).toBe(usd);
});

test.for(["", "five", "-1", "1,5", "1.", ".5", "1e3", "0.0000000001", "9999999999.123456789"])(
  "%s is none that a JSON number tells exactly",
  (typed) => {
    expect(usdOf(typed)).toBeUndefined();
  },
);
