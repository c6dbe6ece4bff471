import { costOfUnits } from "../../lib/money/nano-usd.ts";
import type { Billable, Price } from "./catalog.ts";
import type { ImagePrice } from "./image.ts";

/** How many units of each kind were used; kinds left out count 0. */
export type UsedUnits = Readonly<Partial<Record<Billable, bigint>>>;

/** The list price of what was used at an endpoint, nano-USD, rounded once, up. Units without a price cost nothing. */
export function listPrice(prices: readonly Price[], used: UsedUnits): bigint {
  return costOfUnits(
    prices.map(({ billable, nanoUsdPerMillion }) => ({ nanoUsdPerMillion, units: used[billable] ?? 0n })),
  );
}

/** What a request asks of a speech endpoint, in Unicode code points. */
export interface AskedSpeech {
  readonly inputCharacters: number;
  /** Of all other text that the upstream reads: instructions, passthrough options. */
  readonly otherCharacters: number;
}

/** The declared upper bound of what a request costs at a speech endpoint, nano-USD. */
export function mostSpeechCanCost(prices: readonly Price[], asked: AskedSpeech): bigint {
  const input = BigInt(asked.inputCharacters);
  const text = input + BigInt(asked.otherCharacters);
  return costOfUnits(
    prices.map(({ billable, nanoUsdPerMillion, mostPerInputCharacter = 1n }) => {
      const characters = billable === "input_text_token" ? text : input;
      return {
        nanoUsdPerMillion,
        units: billable === "request" ? 1n : characters * mostPerInputCharacter,
      };
    }),
  );
}

/** What was used of an image endpoint. Megapixels are begun ones, over all images of their kind. */
export interface UsedImageUnits {
  readonly images: number;
  readonly megapixels: number;
  readonly references: number;
  readonly referenceMegapixels: number;
  readonly textTokens: number;
  readonly referenceTokens: number;
  readonly outputTokens: number;
  /** The quality, tier and pixel size of the images, as far as they are known. */
  readonly variants: readonly string[];
}

/** The list price of what was used of an image endpoint, nano-USD, rounded once, up. */
export function imageListPrice(prices: readonly ImagePrice[], used: UsedImageUnits): bigint {
  return costOfUnits(
    applicable(prices, used.variants).map((price) => ({
      nanoUsdPerMillion: price.nanoUsdPerMillion,
      units: BigInt(price.unit === "token" ? tokensOf(price, used) : countOf(price, used)),
    })),
  );
}

/** What a request asks of an image endpoint. */
export interface AskedImages
  extends Pick<UsedImageUnits, "images" | "megapixels" | "references" | "referenceMegapixels" | "variants"> {
  /** Of the prompt and of all other text that the upstream reads (passthrough options), Unicode code points. */
  readonly textCharacters: number;
}

/** The declared upper bound of what a request costs at an image endpoint, nano-USD. */
export function mostImagesCanCost(prices: readonly ImagePrice[], asked: AskedImages): bigint {
  return costOfUnits(
    applicable(prices, asked.variants).map((price) => ({
      nanoUsdPerMillion: price.nanoUsdPerMillion,
      units:
        price.unit === "token"
          ? price.mostTokensEach * BigInt(tokenCarriersOf(price, asked))
          : BigInt(countOf(price, asked)),
    })),
  );
}

/**
 * One line for each thing that is billed: that of a variant in question, else the one for all, else the dearest, since
 * nobody knows which variant the endpoint chose.
 */
function applicable(prices: readonly ImagePrice[], variants: readonly string[]): readonly ImagePrice[] {
  const lines = Map.groupBy(prices, ({ billable, unit }) => `${billable} ${unit}`);
  return [...lines.values()].flatMap((alternatives) => {
    const named = alternatives.filter(({ variant }) => variants.includes(variant));
    const general = alternatives.filter(({ variant }) => variant === "");
    const [left = []] = [named, general, alternatives].filter(({ length }) => length > 0);
    return left.toSorted(byPriceDescending).slice(0, 1);
  });
}

function byPriceDescending(one: ImagePrice, other: ImagePrice): number {
  return one.nanoUsdPerMillion > other.nanoUsdPerMillion ? -1 : 1;
}

type CountedUnits = Pick<UsedImageUnits, "images" | "megapixels" | "references" | "referenceMegapixels">;

function countOf({ billable, unit }: ImagePrice, used: CountedUnits): number {
  if (unit === "request") return 1;
  const isOutput = billable === "output_image";
  if (unit === "megapixel") return isOutput ? used.megapixels : used.referenceMegapixels;
  return isOutput ? used.images : used.references;
}

function tokensOf({ billable }: ImagePrice, used: UsedImageUnits): number {
  if (billable === "input_text") return used.textTokens;
  return billable === "output_image" ? used.outputTokens : used.referenceTokens;
}

function tokenCarriersOf({ billable }: ImagePrice, asked: AskedImages): number {
  if (billable === "input_text") return asked.textCharacters;
  return billable === "output_image" ? asked.images : asked.references;
}
