import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { costOfUnits, formatUsd, type PricedUnits, parseUsd, usdNumber } from "./nano-usd.ts";

const largest = 10n ** 27n - 1n;
const amount = fc.bigInt({ min: -largest, max: largest });
const line = fc.record({
  nanoUsdPerMillion: fc.bigInt({ min: 0n, max: 10n ** 13n }),
  units: fc.bigInt({ min: 0n, max: 10n ** 12n }),
});

describe("parseUsd", () => {
  test.each([
    ["15", 15_000_000_000n],
    ["0.6", 600_000_000n],
    ["0.60", 600_000_000n],
    ["0.000000001", 1n],
    ["-2.50", -2_500_000_000n],
    ["007", 7_000_000_000n],
    ["0", 0n],
    ["-0", 0n],
  ])("reads %s", (text, nanoUsd) => {
    expect(parseUsd(text)).toBe(nanoUsd);
  });

  test.each([
    "",
    " 1",
    "1 ",
    "+1",
    ".5",
    "5.",
    "1e3",
    "0x1",
    "1,000",
    "1.0000000001",
    "NaN",
    "--1",
    "1\n",
    "١",
  ])("refuses %j", (text) => {
    expect(() => parseUsd(text)).toThrow(RangeError);
  });
});

describe("formatUsd", () => {
  test("is read back as the same amount", () => {
    fc.assert(fc.property(amount, (nanoUsd) => parseUsd(formatUsd(nanoUsd)) === nanoUsd));
  });

  test("has no needless zeros", () => {
    expect(formatUsd(1_500_000_000n)).toBe("1.5");
    expect(formatUsd(20_000_000_000n)).toBe("20");
    expect(formatUsd(-1n)).toBe("-0.000000001");
  });
});

describe("usdNumber", () => {
  test("keeps every amount below a million dollars exact to the nano-USD", () => {
    const upToMillion = fc.bigInt({ min: -(10n ** 15n), max: 10n ** 15n });
    fc.assert(fc.property(upToMillion, (nanoUsd) => parseUsd(usdNumber(nanoUsd).toFixed(9)) === nanoUsd));
  });

  test("keeps the order of amounts", () => {
    fc.assert(fc.property(amount, amount, (one, other) => one > other || usdNumber(one) <= usdNumber(other)));
  });

  test("is a plain JSON number", () => {
    expect(JSON.stringify({ cost: usdNumber(15_000n) })).toBe('{"cost":0.000015}');
    expect(Object.is(usdNumber(0n), 0)).toBe(true);
  });
});

describe("costOfUnits", () => {
  const millionths = (lines: PricedUnits[]) =>
    lines.reduce((sum, { nanoUsdPerMillion, units }) => sum + nanoUsdPerMillion * units, 0n);

  test("is the least whole number of nano-USD that covers the exact price", () => {
    fc.assert(
      fc.property(fc.array(line, { maxLength: 5 }), (lines) => {
        const cost = costOfUnits(lines);
        const exact = millionths(lines);
        return cost * 1_000_000n >= exact && (cost - 1n) * 1_000_000n < exact;
      }),
    );
  });

  test("rounds the sum once, not each line", () => {
    const half = { nanoUsdPerMillion: 500_000n, units: 1n };
    expect(costOfUnits([half])).toBe(1n);
    expect(costOfUnits([half, half])).toBe(1n);
    expect(costOfUnits([half, half, half])).toBe(2n);
  });

  test("charges 15 USD per million characters as 15 USD per million characters", () => {
    expect(costOfUnits([{ nanoUsdPerMillion: parseUsd("15"), units: 1_000_000n }])).toBe(parseUsd("15"));
    expect(costOfUnits([{ nanoUsdPerMillion: parseUsd("15"), units: 11n }])).toBe(165_000n);
  });

  test("is nothing for nothing", () => {
    expect(costOfUnits([])).toBe(0n);
    expect(costOfUnits([{ nanoUsdPerMillion: 0n, units: 10n }])).toBe(0n);
  });

  test("refuses a negative count or price", () => {
    expect(() => costOfUnits([{ nanoUsdPerMillion: 1n, units: -1n }])).toThrow(RangeError);
    expect(() => costOfUnits([{ nanoUsdPerMillion: -1n, units: 1n }])).toThrow(RangeError);
  });
});
