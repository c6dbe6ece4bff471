import { expect, test } from "vitest";
import type { PriceLine } from "./models.ts";
import { mostImagesCost, mostSpeechCost } from "./most-cost.ts";

const line = (billable: string, unit: string, cost_usd: number, variant?: string): PriceLine => ({
  billable,
  unit,
  cost_usd,
  ...(variant === undefined ? {} : { variant }),
});

test.for([
  ["characters as people count them", [[line("input_character", "character", 0.000015)]], "añ🎈", 45_000n],
  ["bytes", [[line("input_utf8_byte", "byte", 0.000015)]], "añ🎈", 105_000n],
  [
    "prices finer than a billionth, rounded up once",
    [[line("input_character", "character", 1.5e-10)]],
    "abc",
    1n,
  ],
  [
    "a sum that floating point would miss",
    [[line("request", "request", 0.1), line("input_character", "character", 0.2)]],
    "a",
    300_000_000n,
  ],
  [
    "the dearest endpoint",
    [[line("input_character", "character", 0.000001)], [line("request", "request", 0.01)]],
    "abc",
    10_000_000n,
  ],
  ["nothing where it is free", [[line("input_character", "character", 0)]], "abc", 0n],
  [
    "no bound for what a provider counts",
    [[line("output_audio_token", "token", 0.000012)]],
    "abc",
    undefined,
  ],
] as const)("speech: %s", ([, endpoints, input, most]) => {
  expect(mostSpeechCost(endpoints, input)).toBe(most);
});

const asked = { n: 2, references: 0, quality: "auto", resolution: "auto", size: "auto" };
const byQuality = [
  line("output_image", "image", 0.01, "low"),
  line("output_image", "image", 0.04, "high"),
  line("output_image", "image", 0.08, "high 4K"),
];

test.for([
  ["by the image", [line("output_image", "image", 0.001)], asked, 2_000_000n],
  ["by the request", [line("output_image", "request", 0.05)], asked, 50_000_000n],
  ["the dearest where nothing is said", byQuality, asked, 160_000_000n],
  ["of what is asked for", byQuality, { ...asked, quality: "low" }, 20_000_000n],
  [
    "with references",
    [line("output_image", "image", 0.001), line("input_reference", "image", 0.5)],
    { ...asked, references: 3 },
    1_502_000_000n,
  ],
  ["references that are not there cost nothing", [line("input_image", "token", 0.5)], asked, 0n],
  ["no bound by the token", [line("output_image", "token", 0.00003)], asked, undefined],
] as const)("images: %s", ([, prices, wishes, most]) => {
  expect(mostImagesCost([prices], wishes)).toBe(most);
});
