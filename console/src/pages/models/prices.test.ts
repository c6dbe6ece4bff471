import { expect, test } from "vitest";
import { mostToSpeak, type PriceLine, priceWords } from "./prices.ts";

const perCharacter = (cost_usd: number): PriceLine => ({
  billable: "input_character",
  unit: "character",
  cost_usd,
});

test.for([
  [perCharacter(0.000015), "$15.00 per million characters"],
  [perCharacter(1.5e-10), "$0.00015 per million characters"],
  [{ billable: "output_audio_token", unit: "token", cost_usd: 6e-7 }, "$0.60 per million tokens of speech"],
  [
    { billable: "output_image", unit: "image", cost_usd: 0.06, variant: "low 2K" },
    "$0.06 per image (low 2K)",
  ],
  [{ billable: "input_font", unit: "request", cost_usd: 0.1 }, "$0.10 per request of input font"],
] as const)("%o is told in words", ([line, words]) => {
  expect(priceWords(line)).toBe(words);
});

test("what a text costs at most is what the dearest endpoint takes, rounded up", () => {
  const endpoints = [{ pricing: [perCharacter(1e-6)] }, { pricing: [perCharacter(1.5e-10)] }];
  expect(mostToSpeak(10, endpoints)).toBe(10_000n);
  expect(mostToSpeak(1, endpoints.slice(1))).toBe(1n);
});

test("what is billed by tokens isn't known before", () => {
  const pricing = [{ billable: "output_audio_token", unit: "token", cost_usd: 1e-5 }];
  expect(mostToSpeak(10, [{ pricing }])).toBeUndefined();
});
