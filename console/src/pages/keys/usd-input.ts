import { nanoUsdOf } from "../../kit/money.ts";

const amount = /^\$?\s*(\d{1,10})(?:\.(\d{1,9}))?$/;

/** The JSON number that says exactly what was typed, in US dollars; undefined for what is no amount or has none. */
export function usdOf(typed: string): number | undefined {
  const [, whole, fraction = ""] = amount.exec(typed.trim()) ?? [];
  if (whole === undefined) return undefined;
  const usd = Number(`${whole}.${fraction}`);
  return nanoUsdOf(usd) === BigInt(whole + fraction.padEnd(9, "0")) ? usd : undefined;
}
