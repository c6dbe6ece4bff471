/**
 * Why a charge is not, or not only, what the upstream reported: it reported nothing (`missing`), no counts (`invalid`),
 * nothing used though output was delivered (`zero`), more than twice the bound (`beyond_reason`): the bound is charged. Or
 * it reported more than the bound and at most twice as much (`above_bound`), which is charged.
 */
export const usageDoubtKinds = ["missing", "invalid", "zero", "above_bound", "beyond_reason"] as const;

type UsageDoubtKind = (typeof usageDoubtKinds)[number];

/** A report of tokens used that the operator should look at. */
export interface UsageDoubt {
  readonly kind: UsageDoubtKind;
  readonly providerSlug: string;
  readonly endpointId: string;
  /** The list price of what was reported, nano-USD; undefined where that has none. */
  readonly reportedNanoUsd: bigint | undefined;
  /** The most that it should have come to. */
  readonly mostNanoUsd: bigint;
}
