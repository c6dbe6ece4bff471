import { parseUsd } from "../../lib/money/nano-usd.ts";

/** What a JSON number too small for a plain decimal looks like: `1.5e-7`. */
const exponential = /^(-?)(\d)(?:\.(\d+))?e-(\d+)$/;

/**
 * An amount of US dollars in a request as nano-USD: exactly what its shortest decimal says; undefined when that has
 * more than 9 decimals or when no amount is that large.
 */
export function nanoUsdFrom(amountUsd: number): bigint | undefined {
  try {
    return parseUsd(plainDecimal(amountUsd));
  } catch (thrown) {
    if (thrown instanceof RangeError) return undefined;
    throw thrown;
  }
}

function plainDecimal(value: number): string {
  const text = String(value);
  const match = exponential.exec(text);
  if (match === null) return text;
  const [, sign = "", first = "", rest = "", exponent] = match;
  return `${sign}0.${"0".repeat(Number(exponent) - 1)}${first}${rest}`;
}
