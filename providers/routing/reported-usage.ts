import type { UsageDoubt } from "../../lib/generation/usage-doubt.ts";
import type { TokenUsage } from "../contract.ts";

/** How something that was delivered is billed. */
export interface BilledDelivery {
  /** Whether tokens of the input, and of the output, have a price here. */
  readonly inputByTokens: boolean;
  readonly outputByTokens: boolean;
  /** The most that it should have come to, list price, nano-USD. */
  readonly mostNanoUsd: bigint;
  /** Its list price, nano-USD; the counts are not negative and are kept apart. */
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
 * the bound. What has no price by tokens is charged without a report, and without a doubt about it.
 */
export function chargeByReport(
  reported: TokenUsage | undefined,
  delivery: BilledDelivery | undefined,
): ReportedCharge {
  const isValid = reported !== undefined && isCountOfTokens(reported);
  const usage = isValid ? reported : undefined;
  if (delivery === undefined) return { listPriceNanoUsd: 0n, usage, doubt: undefined };
  const { inputByTokens, outputByTokens, mostNanoUsd } = delivery;
  if (!inputByTokens && !outputByTokens) {
    return { listPriceNanoUsd: delivery.priceOf(usage ?? nothing), usage, doubt: undefined };
  }
  const charge = (kind: UsageDoubt["kind"], reportedNanoUsd: bigint | undefined): ReportedCharge => ({
    listPriceNanoUsd: kind === "above_bound" && reportedNanoUsd !== undefined ? reportedNanoUsd : mostNanoUsd,
    usage,
    doubt: { kind, reportedNanoUsd, mostNanoUsd },
  });
  if (reported === undefined) return charge("missing", undefined);
  if (usage === undefined) return charge("invalid", undefined);
  const price = delivery.priceOf(usage);
  const isZero = (inputByTokens && usage.prompt === 0) || (outputByTokens && usage.completion === 0);
  if (isZero) return charge("zero", price);
  if (price > mostTimesBound * mostNanoUsd) return charge("beyond_reason", price);
  if (price > mostNanoUsd) return charge("above_bound", price);
  return { listPriceNanoUsd: price, usage, doubt: undefined };
}

/** Whether all are counts, and no part is more than its whole. */
function isCountOfTokens(usage: TokenUsage): boolean {
  const counts: readonly (number | undefined)[] = Object.values(usage);
  const areCounts = counts.every(
    (count) => count === undefined || (Number.isSafeInteger(count) && count >= 0),
  );
  return areCounts && (usage.imagePrompt ?? 0) <= usage.prompt;
}
