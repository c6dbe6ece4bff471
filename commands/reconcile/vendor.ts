import type { UsageRecordSummary } from "../../gen/media/usage/v1/usage_pb.ts";
import { formatUsd } from "../../lib/money/nano-usd.ts";
import type { DaySpan } from "./compare.ts";

/** What one provider's bill for one model should say, ours and by its own reports. */
interface Bill {
  readonly providerSlug: string;
  readonly model: string;
  /** Whether the bill goes to accounts, for their own keys. */
  readonly byok: boolean;
  requests: number;
  readonly characters: Sides;
  readonly costNanoUsd: Sides;
}

/** Sums over the requests of which the provider reported the amount. */
interface Sides {
  requests: number;
  ours: bigint;
  theirs: bigint;
}

/** Sums of records by provider and model, with what the providers reported beside them; ordered by both. */
export async function sumBills(
  records: AsyncIterable<UsageRecordSummary>,
  { from, to }: DaySpan,
): Promise<readonly Bill[]> {
  const bills = new Map<string, Bill>();
  for await (const { date, billing } of records) {
    if (billing === undefined || date < from || date > to) continue;
    const { providerSlug, model, byok, inputCharacters, listPriceNanoUsd, reported } = billing;
    const key = `${providerSlug}\t${model}\t${byok}`;
    const bill = bills.get(key) ?? emptyBill(providerSlug, model, byok);
    bills.set(key, bill);
    bill.requests += 1;
    add(bill.characters, inputCharacters, reported?.characters);
    add(bill.costNanoUsd, listPriceNanoUsd, reported?.costNanoUsd);
  }
  return [...bills.entries()].toSorted(([one], [other]) => (one < other ? -1 : 1)).map(([, bill]) => bill);
}

function emptyBill(providerSlug: string, model: string, byok: boolean): Bill {
  const none = () => ({ requests: 0, ours: 0n, theirs: 0n });
  return { providerSlug, model, byok, requests: 0, characters: none(), costNanoUsd: none() };
}

function add(sides: Sides, ours: bigint, theirs: bigint | undefined): void {
  if (theirs === undefined) return;
  sides.requests += 1;
  sides.ours += ours;
  sides.theirs += theirs;
}

/** Whether two sums are further apart than so many percent of the larger. */
function differs({ ours, theirs }: Sides, percent: number): boolean {
  const [small, large] = ours < theirs ? [ours, theirs] : [theirs, ours];
  return (large - small) * 10_000n > large * BigInt(Math.round(percent * 100));
}

/** A line for each bill, in words, and how many of them the provider sees otherwise than we do. */
export function describeBills(bills: readonly Bill[], percent: number) {
  let differing = 0;
  const lines = bills.map(({ providerSlug, model, byok, requests, characters, costNanoUsd }) => {
    const isOdd = [characters, costNanoUsd].some((sides) => differs(sides, percent));
    if (isOdd) differing += 1;
    const said = [
      ...sidesInWords("characters", characters, String),
      ...sidesInWords("USD", costNanoUsd, formatUsd),
    ];
    const reports = said.length === 0 ? "nothing reported" : said.join("; ");
    return `${providerSlug}\t${model}${byok ? " (own keys)" : ""}\t${requests} requests\t${reports}${isOdd ? "\tDIFFERS" : ""}`;
  });
  return { lines, differing };
}

function sidesInWords(unit: string, sides: Sides, format: (amount: bigint) => string): readonly string[] {
  if (sides.requests === 0) return [];
  return [`${unit} of ${sides.requests}: ours ${format(sides.ours)}, theirs ${format(sides.theirs)}`];
}
