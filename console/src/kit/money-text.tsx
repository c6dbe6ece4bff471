import { formatUsd, nanoUsdOf } from "./money.ts";

/** An amount of the interface (US dollars as a JSON number) or of ours (nano-USD), exact. */
export function MoneyText({ usd }: { usd: number | bigint }) {
  return <span className="number">{formatUsd(typeof usd === "bigint" ? usd : nanoUsdOf(usd))}</span>;
}
