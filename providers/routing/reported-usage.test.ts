import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TokenUsage } from "../contract.ts";
import { type BilledDelivery, chargeByReport } from "./reported-usage.ts";

/** 1 nano-USD a token of the prompt, 10 a token of the output. */
const delivery = (mostNanoUsd: bigint, changes: Partial<BilledDelivery> = {}): BilledDelivery => ({
  inputByTokens: true,
  outputByTokens: true,
  byReportedCost: false,
  mostNanoUsd,
  priceOf: ({ prompt, completion }) => BigInt(prompt) + 10n * BigInt(completion),
  ...changes,
});

const count = fc.oneof(
  fc.nat(1000),
  fc.constantFrom(0, 1, Number.MAX_SAFE_INTEGER),
  fc.constantFrom(-1, -0.5, 0.5, Number.NaN, Infinity, -Infinity, 2 ** 53, Number.MIN_SAFE_INTEGER),
);
const anyUsage = fc.record(
  { prompt: count, completion: count, imagePrompt: count, cachedPrompt: count, audioCompletion: count },
  { requiredKeys: ["prompt", "completion"] },
);
const bound = fc.bigInt({ min: 1n, max: 100_000n });

describe("a charge by a report", () => {
  test("is never negative and never more than twice the bound, whatever is reported", () => {
    fc.assert(
      fc.property(fc.option(anyUsage, { nil: undefined }), bound, (usage, most) => {
        const { listPriceNanoUsd } = chargeByReport({ tokens: usage }, delivery(most));
        return listPriceNanoUsd > 0n && listPriceNanoUsd <= 2n * most;
      }),
    );
  });

  test("is what was reported, or else a doubt says why", () => {
    fc.assert(
      fc.property(anyUsage, bound, (usage, most) => {
        const charge = chargeByReport({ tokens: usage }, delivery(most));
        if (charge.doubt === undefined || charge.doubt.kind === "above_bound")
          return charge.usage === usage && charge.listPriceNanoUsd === delivery(most).priceOf(usage);
        return charge.listPriceNanoUsd === most && charge.doubt.mostNanoUsd === most;
      }),
    );
  });

  test("records counts alone", () => {
    fc.assert(
      fc.property(anyUsage, bound, (usage, most) => {
        const recorded = Object.values(chargeByReport({ tokens: usage }, delivery(most)).usage ?? {});
        return recorded.every((each) => Number.isSafeInteger(each) && each >= 0);
      }),
    );
  });

  const most = 1000n;
  test.for<[string, TokenUsage | undefined, bigint, string | undefined]>([
    ["as it stands up to the bound", { prompt: 100, completion: 90 }, 1000n, undefined],
    ["none", undefined, most, "missing"],
    ["a negative count", { prompt: -5, completion: 9 }, most, "invalid"],
    ["what is no whole number", { prompt: 1, completion: 9.5 }, most, "invalid"],
    ["what is no number", { prompt: 1, completion: Number.NaN }, most, "invalid"],
    ["a count that is not exact any more", { prompt: 1, completion: 2 ** 53 }, most, "invalid"],
    ["a part that is more than its whole", { prompt: 1, imagePrompt: 2, completion: 9 }, most, "invalid"],
    ["no output though there was some", { prompt: 100, completion: 0 }, most, "zero"],
    ["no input though there was some", { prompt: 0, completion: 9 }, most, "zero"],
    ["one more than the bound", { prompt: 101, completion: 90 }, 1001n, "above_bound"],
    ["twice the bound", { prompt: 100, completion: 190 }, 2000n, "above_bound"],
    ["more than twice the bound", { prompt: 101, completion: 190 }, most, "beyond_reason"],
  ])("of %s", ([, usage, cost, doubt]) => {
    const charge = chargeByReport({ tokens: usage }, delivery(most));
    expect([charge.listPriceNanoUsd, charge.doubt?.kind]).toEqual([cost, doubt]);
  });

  test("has no doubt about what has no price by tokens, and records its tokens all the same", () => {
    const byImage = delivery(most, { inputByTokens: false, outputByTokens: false, priceOf: () => 7n });
    const usage = { prompt: 0, completion: 3 };
    expect(chargeByReport({ tokens: usage }, byImage)).toEqual({
      listPriceNanoUsd: 7n,
      usage,
      doubt: undefined,
    });
    expect(chargeByReport({ tokens: { prompt: -1, completion: 3 } }, byImage)).toEqual({
      listPriceNanoUsd: 7n,
      usage: undefined,
      doubt: undefined,
    });
  });

  test("asks for no tokens of a kind that has no price", () => {
    const outputAlone = delivery(most, { inputByTokens: false });
    expect(chargeByReport({ tokens: { prompt: 0, completion: 5 } }, outputAlone).doubt).toBeUndefined();
  });

  test("is nothing where nothing was delivered", () => {
    const usage = { prompt: 5, completion: 5 };
    expect(chargeByReport({ tokens: usage }, undefined)).toEqual({
      listPriceNanoUsd: 0n,
      usage,
      doubt: undefined,
    });
  });

  describe("by the vendor's own figure", () => {
    const byCost = (mostNanoUsd: bigint) => delivery(mostNanoUsd, { byReportedCost: true });

    test("is never negative and never more than twice the bound, whatever is reported", () => {
      const cost = fc.oneof(fc.double(), fc.double({ min: -1e-6, max: 1e-3 }), fc.constant(undefined));
      fc.assert(
        fc.property(cost, bound, (costUsd, most) => {
          const { listPriceNanoUsd, doubt } = chargeByReport({ costUsd }, byCost(most));
          return listPriceNanoUsd > 0n && listPriceNanoUsd <= 2n * most && (doubt ?? costUsd) !== undefined;
        }),
      );
    });

    test.for<[string, number | undefined, bigint, string | undefined]>([
      ["exact to the nano-USD", 0.000000123, 123n, undefined],
      ["rounded up", 0.0000000015, 2n, undefined],
      ["none", undefined, most, "missing"],
      ["no amount", Number.NaN, most, "invalid"],
      ["a credit", -0.1, most, "invalid"],
      ["nothing", 0, most, "zero"],
      ["above the bound", 0.0000015, 1500n, "above_bound"],
      ["beyond reason", 0.0000025, most, "beyond_reason"],
    ])("of %s", ([, costUsd, cost, doubt]) => {
      const charge = chargeByReport({ costUsd }, byCost(most));
      expect([charge.listPriceNanoUsd, charge.doubt?.kind]).toEqual([cost, doubt]);
    });
  });

  test("of what was counted here keeps within the bounds as well", () => {
    const bySecond = (price: bigint) =>
      delivery(most, { inputByTokens: false, outputByTokens: false, priceOf: () => price });
    expect(chargeByReport(undefined, bySecond(1500n))).toMatchObject({ listPriceNanoUsd: 1500n });
    expect(chargeByReport(undefined, bySecond(2500n))).toMatchObject({ listPriceNanoUsd: most });
  });
});
