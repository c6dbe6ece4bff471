import type { UsageDoubt } from "../../lib/generation/usage-doubt.ts";
import { nanoUsdPerUsd } from "../../lib/money/nano-usd.ts";
import type { TokenUsage, UpstreamReport } from "../contract.ts";

/** How something that was delivered is billed. */
export interface BilledDelivery {
  /** Whether tokens of the input, and of the output, have a price here. */
  readonly inputByTokens: boolean;
  readonly outputByTokens: boolean;
  /** Whether the vendor's own figure is what is charged. */
  readonly byReportedCost: boolean;
  /** The most that it should have come to, list price, nano-USD. */
  readonly mostNanoUsd: bigint;
  /** Its list price, nano-USD, with what was counted here; the counts are not negative and are kept apart. */
  priceOf(usage: TokenUsage): bigint;
}

/** What a generation is charged, and the tokens that its record states. */
export interface ReportedCharge {
  readonly listPriceNanoUsd: bigint;
  /** Undefined where nothing that can be believed was reported. */
  readonly usage: TokenUsage | undefined;
  readonly doubt: Omit<UsageDoubt, "providerSlug" | "endpointId"> | undefined;
}

/** Within this many times the bound, what is reported above it is believed. */
const mostTimesBound = 2n;

const nothing: TokenUsage = { prompt: 0, completion: 0 };

/**
 * What is charged by an upstream's report: no report is believed blindly. Negative or unsafe counts, and 0 with output
 * delivered, count as none: the bound is charged. What is above the bound is charged up to twice the bound, beyond that
 * the bound. What has no price by a report is charged without one, within the same limits.
 */
export function chargeByReport(
  report: UpstreamReport | undefined,
  delivery: BilledDelivery | undefined,
): ReportedCharge {
  const reported = report?.tokens;
  const usage = reported !== undefined && isCountOfTokens(reported) ? reported : undefined;
  if (delivery === undefined) return { listPriceNanoUsd: 0n, usage, doubt: undefined };
  const { mostNanoUsd } = delivery;
  const charge = (kind: UsageDoubt["kind"], reportedNanoUsd: bigint | undefined): ReportedCharge => ({
    listPriceNanoUsd: kind === "above_bound" && reportedNanoUsd !== undefined ? reportedNanoUsd : mostNanoUsd,
    usage,
    doubt: { kind, reportedNanoUsd, mostNanoUsd },
  });
  const { price, doubt } = delivery.byReportedCost
    ? costOf(report?.costUsd)
    : priceOfTokens(reported, usage, delivery);
  if (doubt !== undefined || price === undefined) return charge(doubt ?? "missing", price);
  if (price > mostTimesBound * mostNanoUsd) return charge("beyond_reason", price);
  if (price > mostNanoUsd) return charge("above_bound", price);
  return { listPriceNanoUsd: price, usage, doubt: undefined };
}

interface ReportedPrice {
  readonly price?: bigint;
  readonly doubt?: UsageDoubt["kind"];
}

function priceOfTokens(
  reported: TokenUsage | undefined,
  usage: TokenUsage | undefined,
  { inputByTokens, outputByTokens, priceOf }: BilledDelivery,
): ReportedPrice {
  if (!inputByTokens && !outputByTokens) return { price: priceOf(usage ?? nothing) };
  if (reported === undefined) return { doubt: "missing" };
  if (usage === undefined) return { doubt: "invalid" };
  const isZero = (inputByTokens && usage.prompt === 0) || (outputByTokens && usage.completion === 0);
  return { price: priceOf(usage), ...(isZero && { doubt: "zero" }) };
}

/** Rounded up to a whole nano-USD. */
function costOf(costUsd: number | undefined): ReportedPrice {
  if (costUsd === undefined) return { doubt: "missing" };
  const price = nanoUsdOf(costUsd);
  if (price === undefined) return { doubt: "invalid" };
  return { price, ...(price === 0n && { doubt: "zero" }) };
}

/** US dollars as a vendor reports them, rounded up to a whole nano-USD; undefined for what is no amount. */
export function nanoUsdOf(usd: number): bigint | undefined {
  // Fifteen digits are what a double holds: 0.0123 dollars are 12,300,000 and no more.
  const nanoUsd = Math.ceil(Number((usd * Number(nanoUsdPerUsd)).toPrecision(15)));
  return Number.isSafeInteger(nanoUsd) && nanoUsd >= 0 ? BigInt(nanoUsd) : undefined;
}

/** Whether all are counts, and no part is more than its whole. */
function isCountOfTokens(usage: TokenUsage): boolean {
  const counts: readonly (number | undefined)[] = Object.values(usage);
  const areCounts = counts.every(
    (count) => count === undefined || (Number.isSafeInteger(count) && count >= 0),
  );
  const { prompt, imagePrompt = 0, completion, imageCompletion = 0 } = usage;
  return areCounts && imagePrompt <= prompt && imageCompletion <= completion;
}
