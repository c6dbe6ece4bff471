import { percentOf } from "../../lib/money/nano-usd.ts";
import type { Candidate } from "./candidate.ts";

/** What is to be held for a request that may go to any of its candidates. */
export interface AmountToHold<E> {
  /** The first that is to be tried. */
  readonly endpoint: E;
  /** The most that the account may be charged at any of them, nano-USD: the price, or for own keys the fee. */
  readonly amountNanoUsd: bigint;
  /** The highest list price of what own keys may serve, nano-USD. */
  readonly byokAmountNanoUsd: bigint;
}

/** The dearest candidate decides; at least one. `priceOf` is the declared upper bound of the list price, nano-USD. */
export function mostToHold<E>(
  candidates: readonly Candidate<E>[],
  priceOf: (candidate: E) => bigint,
  byokFeePercent: number,
): AmountToHold<E> {
  const [endpoint] = candidates;
  if (endpoint === undefined) throw new RangeError("no candidate");
  let amountNanoUsd = 0n;
  let byokAmountNanoUsd = 0n;
  for (const candidate of candidates) {
    const price = priceOf(candidate);
    const charge = chargeFor(candidate, price, byokFeePercent);
    if (charge > amountNanoUsd) amountNanoUsd = charge;
    if (candidate.ownKey !== undefined && price > byokAmountNanoUsd) byokAmountNanoUsd = price;
  }
  return { endpoint, amountNanoUsd, byokAmountNanoUsd };
}

/** What the account is charged for what costs so much by the list, nano-USD. */
export function chargeFor(
  { ownKey }: Candidate<unknown>,
  listPriceNanoUsd: bigint,
  byokFeePercent: number,
): bigint {
  return ownKey === undefined ? listPriceNanoUsd : percentOf(listPriceNanoUsd, byokFeePercent);
}
