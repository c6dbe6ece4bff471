import fc from "fast-check";
import { expect, test } from "vitest";
import { formatUsd, nanoUsdPerUsd, usdNumber } from "../../lib/money/nano-usd.ts";
import { nanoUsdFrom } from "./usd-amount.ts";

test.for([
  [0, 0n],
  [-0, 0n],
  [15, 15_000_000_000n],
  [0.1, 100_000_000n],
  [0.3, 300_000_000n],
  [1e-9, 1n],
  [1.23e-7, 123n],
  [0.000001, 1000n],
  [-2.5e-8, -25n],
  [900_719.254740993, 900_719_254_740_993n],
] as const)("%s USD are exactly %s nano-USD", ([usd, nanoUsd]) => {
  expect(nanoUsdFrom(usd)).toBe(nanoUsd);
});

test.for([1e-10, 1.5e-9, 0.1234567891, 1e21, 1e18, Number.MAX_VALUE, Number.MIN_VALUE, Number.NaN, Infinity])(
  "%s USD are no amount",
  (usd) => {
    expect(nanoUsdFrom(usd)).toBeUndefined();
  },
);

test("every amount up to a million dollars comes back as it went out", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 1_000_000n * nanoUsdPerUsd }), (nanoUsd) => {
      const wire = JSON.stringify(usdNumber(nanoUsd));
      expect(nanoUsdFrom(JSON.parse(wire))).toBe(nanoUsd);
    }),
    { numRuns: 2000 },
  );
});

test("a decimal is read as it is written, up to 9 decimals, and not at all beyond", () => {
  const digits = fc.tuple(
    fc.integer({ min: 0, max: 99_999 }),
    fc.integer({ min: 1, max: 10 }),
    fc.integer({ min: 1 }),
  );
  fc.assert(
    fc.property(digits, ([whole, decimals, seed]) => {
      const fraction = String(seed % 10 ** decimals).padStart(decimals, "0");
      fc.pre(!fraction.endsWith("0"));
      const text = `${whole}.${fraction}`;
      const read = nanoUsdFrom(JSON.parse(text));
      if (decimals <= 9) expect(formatUsd(read ?? -1n)).toBe(text);
      else expect(read).toBeUndefined();
    }),
    { numRuns: 2000 },
  );
});
