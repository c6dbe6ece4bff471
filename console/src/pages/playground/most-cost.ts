import { nanoUsdOf } from "../../kit/money.ts";
import type { PriceLine } from "./models.ts";

/** What a call costs at most; undefined where a provider bills by what only it can count. */
export type MostCost = bigint | undefined;

/** How many units of a line a call comes to at most; undefined where nobody can say beforehand. */
type MostUnits = (line: PriceLine) => number | undefined;

/** The most that speaking a text costs, nano-USD, whichever endpoint serves. */
export function mostSpeechCost(endpoints: readonly (readonly PriceLine[])[], input: string): MostCost {
  const units: Readonly<Record<string, number>> = {
    request: 1,
    input_character: [...input].length,
    input_utf8_byte: new TextEncoder().encode(input).length,
  };
  return dearestOf(endpoints, ({ billable }) => units[billable]);
}

/** What is asked for that a price of images depends on. */
export interface AskedImages {
  readonly n: number;
  readonly references: number;
  readonly quality: string;
  readonly resolution: string;
  readonly size: string;
}

/** The most that images cost, nano-USD, whichever endpoint serves. */
export function mostImagesCost(endpoints: readonly (readonly PriceLine[])[], asked: AskedImages): MostCost {
  const lines = endpoints.map((prices) => applicable(prices, asked));
  return dearestOf(lines, ({ billable, unit }) => {
    if (unit === "request") return 1;
    const count = billable.startsWith("output_") ? asked.n : asked.references;
    return unit === "image" || unit === "first_megapixel" || count === 0 ? count : undefined;
  });
}

function dearestOf(endpoints: readonly (readonly PriceLine[])[], unitsOf: MostUnits): MostCost {
  let dearest: MostCost;
  for (const prices of endpoints) {
    let sum = 0n;
    for (const line of prices) {
      const units = unitsOf(line);
      if (units === undefined && line.cost_usd > 0) return undefined;
      sum += nanoUsdPerMillion(line.cost_usd) * BigInt(units ?? 0);
    }
    // Rounded once, up, as a charge is.
    const cost = (sum + 999_999n) / 1_000_000n;
    if (dearest === undefined || cost > dearest) dearest = cost;
  }
  return dearest;
}

/** The price of a million units: moves the decimal point of the shortest text, which loses nothing. */
function nanoUsdPerMillion(usd: number): bigint {
  const [mantissa = "0", exponent = "0"] = String(usd).split("e");
  return nanoUsdOf(Number(`${mantissa}e${Number(exponent) + 6}`));
}

/** Of the lines for one thing the dearest that may be meant: those that name what was asked for, else all of them. */
function applicable(prices: readonly PriceLine[], asked: AskedImages): readonly PriceLine[] {
  const wishes = [asked.quality, asked.resolution, asked.size].filter((wish) => wish !== "auto");
  const groups = Map.groupBy(prices, ({ billable, unit }) => `${billable} ${unit}`);
  return [...groups.values()].flatMap((group) => {
    let possible = group;
    for (const wish of wishes) {
      const named = possible.filter(({ variant = "" }) => variant.split(" ").includes(wish));
      if (named.length > 0) possible = named;
    }
    return possible.toSorted((one, other) => other.cost_usd - one.cost_usd).slice(0, 1);
  });
}
