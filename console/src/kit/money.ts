/*
 * Amounts are whole numbers of nano-USD (a billionth of a US dollar) in a bigint. The interface tells US dollars as JSON
 * numbers: the double nearest to at most nine decimals, whose shortest text is those decimals again.
 */

const nanoPerUsd = 1_000_000_000n;

/** The exact amount that a JSON number of the interface stands for. Throws RangeError for what is no amount. */
export function nanoUsdOf(usd: number): bigint {
  if (!Number.isFinite(usd)) throw new RangeError("not an amount");
  const [mantissa = "", exponent = "0"] = String(usd).toLowerCase().split("e");
  const [whole = "", fraction = ""] = mantissa.replace("-", "").split(".");
  const shift = 9 + Number(exponent) - fraction.length;
  const digits = whole + fraction;
  const nano = shift >= 0 ? BigInt(digits) * 10n ** BigInt(shift) : rounded(digits, -shift);
  return usd < 0 ? -nano : nano;
}

/** Digits beyond a billionth, of which the interface tells none, are rounded half up. */
function rounded(digits: string, tooMany: number): bigint {
  const unit = 10n ** BigInt(tooMany);
  return (BigInt(digits) + unit / 2n) / unit;
}

/** The shortest plain decimal of an amount: `15`, `0.6`, `-0.000000001`. */
export function decimalUsd(nanoUsd: bigint): string {
  const [sign, amount] = nanoUsd < 0n ? ["-", -nanoUsd] : ["", nanoUsd];
  const fraction = String(amount % nanoPerUsd)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${sign}${amount / nanoPerUsd}${fraction === "" ? "" : `.${fraction}`}`;
}

/** An amount as people read it, exact, with cents at least: `$1,234.50`, `$0.0000123`. */
export function formatUsd(nanoUsd: bigint): string {
  const [whole = "", fraction = ""] = decimalUsd(nanoUsd).replace("-", "").split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return `${nanoUsd < 0n ? "-" : ""}$${grouped}.${fraction.padEnd(2, "0")}`;
}
