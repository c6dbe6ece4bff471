import Type, { type Static } from "typebox";

/** Digits after the point of a price of one unit: nano-USD per million units are whole. */
const fractionDigits = 15;

/** One line of a price list. */
export const priceLineSchema = Type.Object({
  billable: Type.String({ description: "What is billed." }),
  unit: Type.String({ description: "By which unit." }),
  cost_usd: Type.Number({ minimum: 0, description: "USD a unit." }),
  variant: Type.Optional(
    Type.String({ description: "For which quality or size the line is; absent: for all." }),
  ),
});

/** One line of a price list, as it is shown. */
export type PriceLine = Static<typeof priceLineSchema>;

/** A price as the catalogue has it. */
export interface CataloguePrice {
  readonly billable: string;
  readonly nanoUsdPerMillion: bigint;
  readonly variant?: string;
}

/** The line that a price makes. */
export function toPriceLine(price: CataloguePrice, unit: string): PriceLine {
  const { billable, nanoUsdPerMillion, variant = "" } = price;
  const cost_usd = Number(unitPriceUsd(nanoUsdPerMillion));
  return { billable, unit, cost_usd, ...(variant === "" ? {} : { variant }) };
}

/** The price of one unit, USD, as the shortest plain decimal: `0.000015`. */
export function unitPriceUsd(nanoUsdPerMillion: bigint): string {
  const digits = nanoUsdPerMillion.toString().padStart(fractionDigits + 1, "0");
  const fraction = digits.slice(-fractionDigits).replace(/0+$/, "");
  return `${digits.slice(0, -fractionDigits)}${fraction === "" ? "" : `.${fraction}`}`;
}
