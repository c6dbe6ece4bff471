import { costOfUnits } from "../lib/money/nano-usd.ts";
import type { Billable, Price } from "./catalog.ts";

/** How many units of each kind were used; kinds left out count 0. */
export type UsedUnits = Readonly<Partial<Record<Billable, bigint>>>;

/** The list price of what was used at an endpoint, nano-USD, rounded once, up. Units without a price cost nothing. */
export function listPrice(prices: readonly Price[], used: UsedUnits): bigint {
  return costOfUnits(
    prices.map(({ billable, nanoUsdPerMillion }) => ({ nanoUsdPerMillion, units: used[billable] ?? 0n })),
  );
}

/** The declared upper bound of what speaking so many characters (code points) costs at an endpoint, nano-USD. */
export function mostSpeechCanCost(prices: readonly Price[], inputCharacters: number): bigint {
  const characters = BigInt(inputCharacters);
  return costOfUnits(
    prices.map(({ billable, nanoUsdPerMillion, mostPerInputCharacter = 1n }) => ({
      nanoUsdPerMillion,
      units: billable === "request" ? 1n : characters * mostPerInputCharacter,
    })),
  );
}
