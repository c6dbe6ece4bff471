import { costOfUnits } from "../../lib/money/nano-usd.ts";
import type { Billable, Price } from "./catalog.ts";
import { type ImagePrice, type Resolution, resolutions } from "./image.ts";

/** How many units of each kind were used; kinds left out count 0. Seconds are in milliseconds. */
export type UsedUnits = Readonly<Partial<Record<Billable, bigint>>>;

/** The list price of what was used at an endpoint, nano-USD, rounded once, up. Units without a price cost nothing. */
export function listPrice(prices: readonly Price[], used: UsedUnits): bigint {
  return costOfUnits(
    prices.map(({ billable, nanoUsdPerMillion }) => ({
      nanoUsdPerMillion,
      units: used[billable] ?? 0n,
      inThousandths: billable === "output_audio_second",
    })),
  );
}

/** What a request asks of a speech endpoint, in Unicode code points. */
export interface AskedSpeech {
  readonly inputCharacters: number;
  /** Of the input. */
  readonly inputUtf8Bytes: number;
  /** Of all other text that the upstream reads: instructions, passthrough options. */
  readonly otherCharacters: number;
}

/** What the shortest text may come to beside what its characters do. */
const shortestAudioMs = 1000n;

/** The declared upper bound of what a request costs at a speech endpoint, nano-USD. */
export function mostSpeechCanCost(prices: readonly Price[], asked: AskedSpeech): bigint {
  const input = BigInt(asked.inputCharacters);
  const mostOf = ({ billable, mostPerInputCharacter: most = 1n }: Price): bigint => {
    switch (billable) {
      case "request":
        return 1n;
      case "input_utf8_byte":
        return BigInt(asked.inputUtf8Bytes);
      case "input_text_token":
        return (input + BigInt(asked.otherCharacters)) * most;
      case "output_audio_second":
        return input * most + shortestAudioMs;
      default:
        return input * most;
    }
  };
  return listPrice(prices, Object.fromEntries(prices.map((price) => [price.billable, mostOf(price)])));
}

/** What is known of the images that a price is for; left out: the endpoint decides. */
export interface ImageVariant {
  readonly quality?: string;
  readonly resolution?: Resolution;
  /** `<width>x<height>` */
  readonly size?: string;
}

/** What was used of an image endpoint. Megapixels are begun ones, over all images of their kind. */
export interface UsedImageUnits {
  readonly images: number;
  readonly megapixels: number;
  readonly references: number;
  readonly referenceMegapixels: number;
  readonly textTokens: number;
  readonly referenceTokens: number;
  /** Of the images, and of text that came with them. */
  readonly outputTokens: number;
  readonly outputTextTokens: number;
  readonly variant: ImageVariant;
}

/** The list price of what was used of an image endpoint, nano-USD, rounded once, up. */
export function imageListPrice(prices: readonly ImagePrice[], used: UsedImageUnits): bigint {
  return costOfUnits(
    applicable(prices, used.variant).map((price) => ({
      nanoUsdPerMillion: price.nanoUsdPerMillion,
      units: BigInt(price.unit === "token" ? tokensOf(price, used) : countOf(price, used)),
    })),
  );
}

/** What a request asks of an image endpoint. */
export interface AskedImages
  extends Pick<UsedImageUnits, "images" | "megapixels" | "references" | "referenceMegapixels" | "variant"> {
  /** Of the prompt and of all other text that the upstream reads (passthrough options), Unicode code points. */
  readonly textCharacters: number;
}

/** The declared upper bound of what a request costs at an image endpoint, nano-USD. */
export function mostImagesCanCost(prices: readonly ImagePrice[], asked: AskedImages): bigint {
  return costOfUnits(
    applicable(prices, asked.variant).map((price) => ({
      nanoUsdPerMillion: price.nanoUsdPerMillion,
      units:
        price.unit === "token"
          ? price.mostTokensEach * BigInt(tokenCarriersOf(price, asked))
          : BigInt(countOf(price, asked)),
    })),
  );
}

/**
 * One line for each thing that is billed: of those that name nothing but what is so, the one that names the most; where
 * none is left but lines that name what nobody knows yet, the dearest of these.
 */
function applicable(prices: readonly ImagePrice[], known: ImageVariant): readonly ImagePrice[] {
  const lines = Map.groupBy(prices, ({ billable, unit }) => `${billable} ${unit}`);
  return [...lines.values()].flatMap((alternatives) => {
    const possible = alternatives.filter(({ variant }) =>
      wordsOf(variant).every((word) => maySay(known, word)),
    );
    const certain = possible.filter(({ variant }) => wordsOf(variant).every((word) => says(known, word)));
    const most = Math.max(...certain.map(({ variant }) => wordsOf(variant).length));
    const closest = certain.filter(({ variant }) => wordsOf(variant).length === most);
    const [left = []] = [closest, possible, alternatives].filter(({ length }) => length > 0);
    return left.toSorted(byPriceDescending).slice(0, 1);
  });
}

function wordsOf(variant: string): readonly string[] {
  return variant.split(" ").filter((word) => word !== "");
}

function says(known: ImageVariant, word: string): boolean {
  return known.quality === word || known.resolution === word || known.size === word;
}

/** Whether a word is so, or nothing is known of its kind. */
function maySay(known: ImageVariant, word: string): boolean {
  if (/^\d+x\d+$/.test(word)) return known.size === undefined || known.size === word;
  if (resolutions.some((tier) => tier === word)) return known.resolution === undefined || says(known, word);
  return known.quality === undefined || known.quality === word;
}

function byPriceDescending(one: ImagePrice, other: ImagePrice): number {
  return one.nanoUsdPerMillion > other.nanoUsdPerMillion ? -1 : 1;
}

type CountedUnits = Pick<UsedImageUnits, "images" | "megapixels" | "references" | "referenceMegapixels">;

function countOf({ billable, unit }: ImagePrice, used: CountedUnits): number {
  const isOutput = billable === "output_image";
  const images = isOutput ? used.images : used.references;
  const megapixels = isOutput ? used.megapixels : used.referenceMegapixels;
  switch (unit) {
    case "request":
      return 1;
    case "megapixel":
      return megapixels;
    case "further_megapixel":
      return Math.max(0, megapixels - images);
    default:
      return images;
  }
}

function tokensOf({ billable }: ImagePrice, used: UsedImageUnits): number {
  if (billable === "input_text") return used.textTokens;
  if (billable === "output_text") return used.outputTextTokens;
  return billable === "output_image" ? used.outputTokens : used.referenceTokens;
}

function tokenCarriersOf({ billable }: ImagePrice, asked: AskedImages): number {
  if (billable === "input_text") return asked.textCharacters;
  return billable.startsWith("output_") ? asked.images : asked.references;
}
