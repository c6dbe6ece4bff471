import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type RecordBillingSchema, UsageRecordSummarySchema } from "../../gen/media/usage/v1/usage_pb.ts";
import { describeBills, sumBills } from "./vendor.ts";

type Billing = Exclude<MessageInitShape<typeof RecordBillingSchema>, { $typeName: string }>;

const days = { from: "2030-01-02", to: "2030-01-03" };
const usual = { providerSlug: "acme", model: "acme/voice", inputCharacters: 100n, listPriceNanoUsd: 2_000n };

async function* records(...billings: readonly (Billing & { readonly date?: string })[]) {
  for (const { date = "2030-01-02", ...billing } of billings) {
    yield create(UsageRecordSummarySchema, { date, billing: { ...usual, ...billing } });
  }
}

test("sums are by provider, model and whose key, of what was reported on both sides", async () => {
  const bills = await sumBills(
    records(
      { reported: { characters: 100n } },
      { reported: { characters: 101n, costNanoUsd: 2_000n } },
      {},
      { byok: true, reported: { costNanoUsd: 1n } },
      { providerSlug: "abc", model: "abc/brush" },
      { reported: { characters: 9_999n }, date: "2030-01-01" },
      { reported: { characters: 9_999n }, date: "2030-01-04" },
    ),
    days,
  );
  expect(describeBills(bills, 1)).toEqual({
    differing: 1,
    lines: [
      "abc\tabc/brush\t1 requests\tnothing reported",
      "acme\tacme/voice\t3 requests\tcharacters of 2: ours 200, theirs 201; USD of 1: ours 0.000002, theirs 0.000002",
      "acme\tacme/voice (own keys)\t1 requests\tUSD of 1: ours 0.000002, theirs 0.000000001\tDIFFERS",
    ],
  });
});

test.for([
  [100n, 1, false],
  [101n, 1, false],
  [102n, 1, true],
  [98n, 1, true],
  [102n, 5, false],
  [100n, 0, false],
  [101n, 0, true],
  [0n, 1, true],
] as const)("of 100 characters %d differ by more than %d %%: %s", async ([characters, percent, isOdd]) => {
  const bills = await sumBills(records({ reported: { characters } }), days);
  expect(describeBills(bills, percent).differing).toBe(isOdd ? 1 : 0);
});
