import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseUsd } from "../lib/money/nano-usd.ts";
import type { Billable, Price } from "./catalog.ts";
import { listPrice, mostSpeechCanCost } from "./endpoint-price.ts";

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
    const odd = [price("input_character", "0.0000005"), price("request", "0.0000005")];
    expect(listPrice(odd, { input_character: 1n, request: 1n })).toBe(1n);
  });

  test("takes no account of units that have no price, nor of prices without units", () => {
    expect(listPrice(tokens, { input_character: 1_000_000n })).toBe(0n);
    expect(listPrice([], { request: 1n })).toBe(0n);
  });
});

describe("mostSpeechCanCost", () => {
  test("counts characters, a request once, and tokens by their declared bound", () => {
    expect(mostSpeechCanCost([price("input_character", "15")], 1000)).toBe(parseUsd("0.015"));
    expect(mostSpeechCanCost([price("request", "1")], 1000)).toBe(parseUsd("0.000001"));
    expect(mostSpeechCanCost(tokens, 1000)).toBe(parseUsd("0.0984"));
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
        return listPrice(tokens, used) <= mostSpeechCanCost(tokens, characters);
      }),
    );
  });
});
