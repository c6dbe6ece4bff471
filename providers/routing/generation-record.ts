import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Attempt,
  AttemptSchema,
  Outcome,
  type TokenCounts,
} from "../../gen/media/event/v1/generation_event_pb.ts";
import type { GenerationEnd } from "../../lib/generation/generation-event.ts";
import type { PaidRequestEnd, PaidRequests } from "../../lib/generation/paid-request.ts";
import type { GenerationOutcome } from "../../lib/generation/run-generation.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import { wordOfReason } from "../../lib/runtime/error-code.ts";
import type { Span } from "../../lib/runtime/span.ts";
import type { Endpoint } from "../catalog/catalog.ts";
import type { TokenUsage, UpstreamReport } from "../contract.ts";
import { type AttemptRecord, endAttempt } from "./attempt.ts";
import { AttemptSpans } from "./attempt-span.ts";
import type { Candidate } from "./candidate.ts";
import { chargeFor } from "./most-to-hold.ts";
import { type BilledDelivery, chargeByReport, nanoUsdOf } from "./reported-usage.ts";

/** What was delivered, which differs between media. */
export interface Delivered<E> {
  /** How it is billed at an endpoint; undefined while nothing that costs anything has been delivered. */
  billedAt(endpoint: E): BilledDelivery | undefined;
  readonly units: GenerationEnd["units"];
  /** Whether output was handed out while it was being made. */
  readonly streamed: boolean;
}

/** What a generation has come to so far, for its usage event. */
export class GenerationRecord<E extends Endpoint> {
  readonly #clock: Clock;
  readonly #byokFeePercent: number;
  readonly #spans: AttemptSpans;
  readonly #delivered: Delivered<E>;
  #attempts: readonly AttemptRecord<Candidate<E>>[] = [];
  #report: () => UpstreamReport | undefined = () => undefined;

  constructor(
    medium: "speech" | "image",
    delivered: Delivered<E>,
    paid: Pick<PaidRequests, "clock" | "byokFeePercent">,
    span?: Span,
  ) {
    this.#spans = new AttemptSpans(span, medium);
    this.#delivered = delivered;
    this.#clock = paid.clock;
    this.#byokFeePercent = paid.byokFeePercent;
  }

  /** An attempt has lost, or has its first output. */
  attempted(record: AttemptRecord<Candidate<E>>): void {
    this.#attempts = [...this.#attempts, record];
    this.#spans.attempted(record);
  }

  /** All attempts as they ended, in place of what was reported before. */
  allEnded(attempts: readonly AttemptRecord<Candidate<E>>[]): void {
    this.#attempts = attempts;
    const last = attempts.at(-1);
    if (last !== undefined) this.#spans.ended(last);
  }

  /** Where the winner reports what it came to; asked however it ends. */
  reportsBy(report: () => UpstreamReport | undefined): void {
    this.#report = report;
  }

  /** What the request came to; undefined where no upstream was sent anything and none had failed. */
  end({ outcome, reason, cancelled }: GenerationOutcome): PaidRequestEnd {
    const last = this.#attempts.at(-1);
    if (last === undefined || this.#attempts.every(isUnsent)) return undefined;
    const { endpoint } = last;
    const billed = this.#delivered.billedAt(endpoint);
    const report = this.#report();
    const charge = chargeByReport(report, billed);
    this.#spans.ended({ outcome, reason }, charge.usage);
    const attempts = this.#attempts.map((record) =>
      record.outcome === Outcome.UNSPECIFIED ? endAttempt(record, { outcome, reason }, this.#clock) : record,
    );
    return {
      outcome,
      reason,
      endpoint,
      attempts: attempts.map(toProtoAttempt),
      firstOutputAtMs:
        last.firstOutputMs === undefined ? undefined : Math.round(last.startedAtMs + last.firstOutputMs),
      tokens: toProtoTokens(charge.usage),
      providerReport: toProtoReport(report),
      units: this.#delivered.units,
      byok: endpoint.ownKey !== undefined,
      costNanoUsd: chargeFor(endpoint, charge.listPriceNanoUsd, this.#byokFeePercent),
      listPriceNanoUsd: charge.listPriceNanoUsd,
      cancelled,
      streamed: this.#delivered.streamed,
      usageDoubt: charge.doubt && {
        ...charge.doubt,
        providerSlug: endpoint.providerSlug,
        endpointId: endpoint.id,
      },
    };
  }
}

/** Its caller left before the upstream had all of the request. */
function isUnsent({ outcome, sent }: AttemptRecord): boolean {
  return outcome === Outcome.CANCELLED && !sent;
}

/** An attempt as usage events record it. */
function toProtoAttempt(record: AttemptRecord): Attempt {
  const { endpoint, outcome, reason, providerStatus, startedAtMs, firstOutputMs, durationMs } = record;
  return create(AttemptSchema, {
    endpointId: endpoint.id,
    providerSlug: endpoint.providerSlug,
    providerName: endpoint.providerName,
    byok: endpoint.ownKey !== undefined,
    outcome,
    reason: reason === undefined ? "" : wordOfReason(reason),
    providerStatus,
    startedAt: timestampFromMs(Math.round(startedAtMs)),
    ...(firstOutputMs === undefined ? {} : { firstByteMs: wholeMs(firstOutputMs) }),
    durationMs: wholeMs(durationMs),
  });
}

function wholeMs(durationMs: number): bigint {
  return BigInt(Math.max(0, Math.round(durationMs)));
}

/** What is kept of a report beside its tokens; what can be no count and no amount is left out. */
function toProtoReport(report: UpstreamReport | undefined): GenerationEnd["providerReport"] {
  const { characters, costUsd } = report ?? {};
  const costNanoUsd = costUsd === undefined ? undefined : nanoUsdOf(costUsd);
  const isCount = characters !== undefined && Number.isSafeInteger(characters) && characters >= 0;
  if (!isCount && costNanoUsd === undefined) return undefined;
  return {
    ...(isCount && { characters: BigInt(characters) }),
    ...(costNanoUsd !== undefined && { costNanoUsd }),
  };
}

/** Tokens as usage events count them; all 0 where the upstream reported none. */
function toProtoTokens(usage: TokenUsage | undefined): Omit<TokenCounts, "$typeName" | "$unknown"> {
  return {
    prompt: BigInt(usage?.prompt ?? 0),
    completion: BigInt(usage?.completion ?? 0),
    reasoning: BigInt(usage?.reasoning ?? 0),
    cachedPrompt: BigInt(usage?.cachedPrompt ?? 0),
    imagePrompt: BigInt(usage?.imagePrompt ?? 0),
    imageCompletion: BigInt(usage?.imageCompletion ?? 0),
    audioCompletion: BigInt(usage?.audioCompletion ?? 0),
  };
}
