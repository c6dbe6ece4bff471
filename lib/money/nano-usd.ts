/**
 * Money is an integer number of nano-USD (a billionth of a US dollar) in a bigint, everywhere but at the edges: texts
 * of people and configuration come in through `parseUsd`, JSON numbers go out through `usdNumber`.
 */

/** Nano-USD in one US dollar. */
export const nanoUsdPerUsd = 1_000_000_000n;

const fractionDigits = 9;
const unitsPerPrice = 1_000_000n;
const decimal = /^(-?)(\d{1,18})(?:\.(\d{1,9}))?$/;

/**
 * Reads a plain decimal such as `15`, `0.6` or `-2.50`, exactly. Throws RangeError on any other text: a sign `+`, an
 * exponent, more than 9 decimals, blanks.
 */
export function parseUsd(text: string): bigint {
  const match = decimal.exec(text);
  if (match === null) throw new RangeError("not an amount of US dollars with at most 9 decimals");
  const [, sign, whole = "", fraction = ""] = match;
  const nanoUsd = BigInt(whole) * nanoUsdPerUsd + BigInt(fraction.padEnd(fractionDigits, "0"));
  return sign === "-" ? -nanoUsd : nanoUsd;
}

/** The shortest plain decimal that `parseUsd` reads back as the same amount: `15`, `0.6`, `-2.5`. */
export function formatUsd(nanoUsd: bigint): string {
  const sign = nanoUsd < 0n ? "-" : "";
  const amount = nanoUsd < 0n ? -nanoUsd : nanoUsd;
  const fraction = (amount % nanoUsdPerUsd).toString().padStart(fractionDigits, "0").replace(/0+$/, "");
  return `${sign}${amount / nanoUsdPerUsd}${fraction === "" ? "" : `.${fraction}`}`;
}

/** US dollars as a JSON number: the one nearest to the exact amount. For answers only, never to calculate with. */
export function usdNumber(nanoUsd: bigint): number {
  return Number(formatUsd(nanoUsd));
}

/** So many percent of an amount, nano-USD, rounded up; `percent` is a whole number. */
export function percentOf(nanoUsd: bigint, percent: number): bigint {
  return (nanoUsd * BigInt(percent) + 99n) / 100n;
}

/** So many units at one price. */
export interface PricedUnits {
  /** Nano-USD per million units, not negative. */
  readonly nanoUsdPerMillion: bigint;
  /** Not negative. */
  readonly units: bigint;
  /** Whether `units` counts thousandths of what the price is for. */
  readonly inThousandths?: boolean;
}

/**
 * What all lines cost together, nano-USD: summed exactly, then rounded once, up. Throws RangeError when a price or a
 * count is negative.
 */
export function costOfUnits(lines: Iterable<PricedUnits>): bigint {
  let sum = 0n;
  for (const { nanoUsdPerMillion, units, inThousandths = false } of lines) {
    if (nanoUsdPerMillion < 0n || units < 0n) throw new RangeError("a price or a count is negative");
    sum += nanoUsdPerMillion * units * (inThousandths ? 1n : 1000n);
  }
  const divisor = unitsPerPrice * 1000n;
  return (sum + divisor - 1n) / divisor;
}
