import { formatUsd, nanoUsdOf } from "../../kit/money.ts";

/** A line of a price list, as the interface has it. */
export interface PriceLine {
  readonly billable: string;
  readonly unit: string;
  /** USD a unit. */
  readonly cost_usd: number;
  readonly variant?: string;
}

const million = 1_000_000n;

const wordsByUnit: Readonly<Record<string, string>> = {
  "input_character character": "per million characters",
  "input_text_token token": "per million tokens of text",
  "output_audio_token token": "per million tokens of speech",
  "input_text token": "per million tokens of text sent",
  "input_image token": "per million tokens of images sent",
  "input_reference token": "per million tokens of references",
  "output_image token": "per million tokens of images",
  "output_text token": "per million tokens of text made",
  "output_image image": "per image",
  "output_image megapixel": "per megapixel",
  "output_image first_megapixel": "for the first megapixel of an image",
  "output_image further_megapixel": "per further megapixel",
  "input_reference image": "per reference",
  "input_reference megapixel": "per megapixel of references",
  "input_image image": "per image sent",
  "input_image megapixel": "per megapixel of images sent",
};

/** What a price is, in words: `$15.00 per million characters`. */
export function priceWords({ billable, unit, cost_usd, variant }: PriceLine): string {
  const isTiny = unit === "token" || unit === "character";
  const amount = formatUsd(isTiny ? nanoUsdPerMillion(cost_usd) : nanoUsdOf(cost_usd));
  const spaced = `per ${isTiny ? "million " : ""}${unit} of ${billable}`.replaceAll("_", " ");
  const words = wordsByUnit[`${billable} ${unit}`] ?? spaced;
  return `${amount} ${words}${variant === undefined ? "" : ` (${variant})`}`;
}

/** Prices of a unit have more decimals than amounts have; those of a million units don't. */
function nanoUsdPerMillion(usd: number): bigint {
  const [mantissa, exponent = "0"] = String(usd).split("e");
  return nanoUsdOf(Number(`${mantissa}e${Number(exponent) + 6}`));
}

/**
 * The most that speaking so many characters can cost at any of these endpoints; undefined where one of them bills
 * something that is known only afterwards.
 */
export function mostToSpeak(
  characters: number,
  endpoints: readonly { readonly pricing: readonly PriceLine[] }[],
): bigint | undefined {
  const lines = endpoints.flatMap(({ pricing }) => pricing);
  if (lines.some(({ unit }) => unit !== "character")) return undefined;
  let most = 0n;
  for (const { pricing } of endpoints) {
    const perMillion = pricing.reduce((sum, { cost_usd }) => sum + nanoUsdPerMillion(cost_usd), 0n);
    const cost = (perMillion * BigInt(characters) + million - 1n) / million;
    if (cost > most) most = cost;
  }
  return most;
}
