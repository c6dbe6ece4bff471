import { MoneyText } from "../../kit/money-text.tsx";
import type { PriceLine } from "./models.ts";
import type { MostCost } from "./most-cost.ts";

/** Stands beside the button: what a press of it costs at most, or why nobody can say so beforehand. */
export function MostCostText({ most, prices }: { most: MostCost; prices: readonly PriceLine[] }) {
  if (most !== undefined) {
    return (
      <span className="soft">
        Costs up to <MoneyText usd={most} />
      </span>
    );
  }
  return (
    <span className="soft">
      Billed by what the provider counts:{" "}
      {prices.map(({ billable, unit, cost_usd, variant = "" }, index) => (
        <span key={`${billable} ${unit} ${variant}`}>
          {index > 0 && ", "}
          <span className="number">${plainDecimal(cost_usd)}</span> per {lineName(billable, unit)}
          {variant !== "" && ` (${variant})`}
        </span>
      ))}
    </span>
  );
}

const unitWords: Readonly<Record<string, string>> = {
  request: "request",
  token: "token",
  image: "image",
  megapixel: "megapixel",
  first_megapixel: "first megapixel",
  further_megapixel: "further megapixel",
};

function lineName(billable: string, unit: string): string {
  const what = billable.replaceAll("_", " ");
  const unitName = unitWords[unit] ?? unit;
  return what.endsWith(unitName) ? what : `${unitName} of ${what}`;
}

/** A price of one unit without an exponent, which may be finer than a billionth. */
function plainDecimal(usd: number): string {
  const [mantissa = "", exponent] = String(usd).split("e-");
  if (exponent === undefined) return mantissa;
  return `0.${"0".repeat(Number(exponent) - 1)}${mantissa.replace(".", "")}`;
}
