import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import type { Billable, Price } from "./catalog.ts";
import {
  type AskedImages,
  type ImageVariant,
  imageListPrice,
  listPrice,
  mostImagesCanCost,
  mostSpeechCanCost,
  type UsedImageUnits,
} from "./endpoint-price.ts";
import type { ImagePrice } from "./image.ts";

const price = (billable: Billable, usd: string, most?: bigint): Price => ({
  billable,
  nanoUsdPerMillion: parseUsd(usd),
  mostPerInputCharacter: most,
});
const tokens = [price("input_text_token", "0.6", 4n), price("output_audio_token", "12", 8n)];

describe("listPrice", () => {
  test("is the sum over all kinds of units, rounded once", () => {
    expect(listPrice(tokens, { input_text_token: 10n, output_audio_token: 100n })).toBe(1_206_000n);
    expect(listPrice([price("input_character", "15")], { input_character: 3n })).toBe(45_000n);
    expect(listPrice([price("output_audio_second", "500")], { output_audio_second: 1_250n })).toBe(625_000n);
    const odd = [price("input_character", "0.0000005"), price("request", "0.0000005")];
    expect(listPrice(odd, { input_character: 1n, request: 1n })).toBe(1n);
  });

  test("takes no account of units that have no price, nor of prices without units", () => {
    expect(listPrice(tokens, { input_character: 1_000_000n })).toBe(0n);
    expect(listPrice([], { request: 1n })).toBe(0n);
  });
});

describe("mostSpeechCanCost", () => {
  const thousand = { inputCharacters: 1000, inputUtf8Bytes: 1700, otherCharacters: 0 };

  test("counts all text that is read as input, and no other than the input as spoken", () => {
    const more = { ...thousand, otherCharacters: 500 };
    expect(mostSpeechCanCost([price("input_character", "15")], more)).toBe(parseUsd("0.015"));
    // 500 characters, 4 tokens each, at 0.60 USD a million.
    expect(mostSpeechCanCost(tokens, more) - mostSpeechCanCost(tokens, thousand)).toBe(parseUsd("0.0012"));
  });

  test("counts characters, a request once, and tokens by their declared bound", () => {
    expect(mostSpeechCanCost([price("input_character", "15")], thousand)).toBe(parseUsd("0.015"));
    expect(mostSpeechCanCost([price("request", "1")], thousand)).toBe(parseUsd("0.000001"));
    expect(mostSpeechCanCost(tokens, thousand)).toBe(parseUsd("0.0984"));
    expect(mostSpeechCanCost([price("input_utf8_byte", "15")], thousand)).toBe(parseUsd("0.0255"));
    // 120 ms a character and a second for the shortest, at 300 USD a million seconds.
    expect(mostSpeechCanCost([price("output_audio_second", "300", 120n)], thousand)).toBe(parseUsd("0.0363"));
  });

  test("covers every use within the bounds", () => {
    const use = fc.nat(10_000).chain((characters) =>
      fc.record({
        characters: fc.constant(characters),
        input: fc.nat(characters * 4),
        output: fc.nat(characters * 8),
      }),
    );
    fc.assert(
      fc.property(use, ({ characters, input, output }) => {
        const used = { input_text_token: BigInt(input), output_audio_token: BigInt(output) };
        return (
          listPrice(tokens, used) <= mostSpeechCanCost(tokens, { ...thousand, inputCharacters: characters })
        );
      }),
    );
  });
});

const line = (part: Partial<ImagePrice> & { usd: string }): ImagePrice => {
  const { usd, ...rest } = part;
  const general = { billable: "output_image", unit: "image", variant: "", mostTokensEach: 0n } as const;
  return { ...general, nanoUsdPerMillion: parseUsd(usd), ...rest };
};
const nothing: UsedImageUnits = {
  images: 0,
  megapixels: 0,
  references: 0,
  referenceMegapixels: 0,
  textTokens: 0,
  referenceTokens: 0,
  outputTokens: 0,
  outputTextTokens: 0,
  variant: {},
};
const byToken = [
  line({ unit: "token", usd: "30", mostTokensEach: 16_000n }),
  line({ billable: "input_image", unit: "token", usd: "8", mostTokensEach: 8_000n }),
  line({ billable: "input_text", unit: "token", usd: "5", mostTokensEach: 4n }),
];

describe("imageListPrice", () => {
  test.for<[string, readonly ImagePrice[], Partial<UsedImageUnits>, string]>([
    ["images", [line({ usd: "1000" })], { images: 3 }, "0.003"],
    ["requests, whatever comes of them", [line({ unit: "request", usd: "1000" })], { images: 3 }, "0.001"],
    ["megapixels", [line({ unit: "megapixel", usd: "2000" })], { images: 2, megapixels: 5 }, "0.01"],
    [
      "references",
      [line({ billable: "input_reference", usd: "500" })],
      { references: 4, images: 1 },
      "0.002",
    ],
    [
      "megapixels of references",
      [line({ billable: "input_image", unit: "megapixel", usd: "500" })],
      { referenceMegapixels: 4, megapixels: 9 },
      "0.002",
    ],
    ["tokens of each kind", byToken, { outputTokens: 1000, referenceTokens: 100, textTokens: 10 }, "0.03085"],
  ])("counts %s", ([, prices, used, usd]) => {
    expect(imageListPrice(prices, { ...nothing, ...used })).toBe(parseUsd(usd));
  });

  test("takes the line of the variant, else the one for all, else the dearest", () => {
    const tiers = [
      line({ usd: "1000", variant: "low" }),
      line({ usd: "4000", variant: "high" }),
      line({ usd: "2000", variant: "1024x1024" }),
    ];
    const priceOf = (prices: readonly ImagePrice[], variant: ImageVariant = {}) =>
      imageListPrice(prices, { ...nothing, images: 1, variant });
    const small = { resolution: "1K", size: "1024x1024" } as const;
    expect(priceOf(tiers, { quality: "low" })).toBe(parseUsd("0.001"));
    expect(priceOf(tiers, { quality: "low", ...small })).toBe(parseUsd("0.002"));
    expect(priceOf(tiers)).toBe(parseUsd("0.004"));
    expect(priceOf([...tiers, line({ usd: "500" })], { quality: "medium" })).toBe(parseUsd("0.0005"));
  });

  test("takes the line that says most of what is so, and none that says what is not", () => {
    const lines = [
      line({ usd: "1000", variant: "low 1024x1024" }),
      line({ usd: "2000", variant: "low 2048x2048" }),
      line({ usd: "4000", variant: "high 1024x1024" }),
      line({ usd: "8000", variant: "high 2048x2048" }),
      line({ usd: "3000", variant: "low" }),
    ];
    const priceOf = (variant: ImageVariant) => imageListPrice(lines, { ...nothing, images: 1, variant });
    const [small, large] = [{ size: "1024x1024" }, { size: "2048x2048" }];
    expect(priceOf({ quality: "low", ...small })).toBe(parseUsd("0.001"));
    expect(priceOf({ quality: "high", ...large })).toBe(parseUsd("0.008"));
    expect(priceOf({ quality: "low", size: "512x512" })).toBe(parseUsd("0.003"));
    // The quality is the endpoint's choice: the dearest of this size.
    expect(priceOf(small)).toBe(parseUsd("0.004"));
    expect(priceOf({})).toBe(parseUsd("0.008"));
  });

  test("counts the first megapixel of each image and the further ones apart", () => {
    const lines = [
      line({ usd: "30000", unit: "first_megapixel" }),
      line({ usd: "15000", unit: "further_megapixel" }),
      line({ usd: "15000", unit: "megapixel", billable: "input_reference" }),
    ];
    const used = { ...nothing, images: 2, megapixels: 8, references: 1, referenceMegapixels: 2 };
    expect(imageListPrice(lines, used)).toBe(parseUsd("0.18"));
  });
});

describe("mostImagesCanCost", () => {
  test("covers every use within the bounds", () => {
    const asked = fc.record({
      images: fc.integer({ min: 1, max: 10 }),
      references: fc.nat(16),
      characters: fc.nat(32_000),
    });
    const use = asked.chain((bounds) =>
      fc.record({
        bounds: fc.constant(bounds),
        output: fc.nat(bounds.images * 16_000),
        reference: fc.nat(bounds.references * 8_000),
        text: fc.nat(bounds.characters * 4),
        made: fc.integer({ min: 0, max: bounds.images }),
      }),
    );
    const prices = [...byToken, line({ usd: "7" }), line({ billable: "input_reference", usd: "3" })];
    fc.assert(
      fc.property(use, ({ bounds, output, reference, text, made }) => {
        const asks: AskedImages = {
          images: bounds.images,
          megapixels: 0,
          references: bounds.references,
          referenceMegapixels: 0,
          textCharacters: bounds.characters,
          variant: {},
        };
        const used = {
          ...nothing,
          images: made,
          references: bounds.references,
          outputTokens: output,
          referenceTokens: reference,
          textTokens: text,
        };
        return imageListPrice(prices, used) <= mostImagesCanCost(prices, asks);
      }),
    );
  });
});
