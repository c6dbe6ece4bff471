import type { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { codePoints } from "../../lib/generation/code-points.ts";
import type { PaidRequestEnd, PaidRequests } from "../../lib/generation/paid-request.ts";
import type { Clock } from "../../lib/runtime/clock.ts";
import type { Span } from "../../lib/runtime/span.ts";
import { type AttemptRecord, endAttempt } from "../../providers/attempt.ts";
import { toProtoAttempt, toProtoTokens } from "../../providers/attempt-event.ts";
import { AttemptSpans } from "../../providers/attempt-span.ts";
import type { Candidate } from "../../providers/candidate.ts";
import type { SpeechEndpoint } from "../../providers/catalog.ts";
import type { AudioFormat, TokenUsage } from "../../providers/contract.ts";
import { listPrice, mostSpeechCanCost } from "../../providers/endpoint-price.ts";
import { chargeFor } from "../../providers/most-to-hold.ts";
import { UsableAudio } from "./usable-audio.ts";

/** How a synthesis ended. */
export interface SynthesisEnd {
  readonly outcome: Outcome;
  readonly reason: ErrorReason | undefined;
}

/** What a synthesis has come to so far, for its usage event. */
export class SynthesisRecord {
  readonly #clock: Clock;
  readonly #byokFeePercent: number;
  readonly #spans: AttemptSpans;
  readonly #input: string;
  readonly #usable: UsableAudio;
  #attempts: readonly AttemptRecord<Candidate<SpeechEndpoint>>[] = [];
  #usage: () => TokenUsage | undefined = () => undefined;

  constructor(
    input: string,
    format: AudioFormat,
    paid: Pick<PaidRequests, "clock" | "byokFeePercent">,
    span?: Span,
  ) {
    this.#spans = new AttemptSpans(span, "speech");
    this.#input = input;
    this.#usable = new UsableAudio(format);
    this.#clock = paid.clock;
    this.#byokFeePercent = paid.byokFeePercent;
  }

  /** An attempt has lost, or has its first output. */
  attempted(record: AttemptRecord<Candidate<SpeechEndpoint>>): void {
    this.#attempts = [...this.#attempts, record];
    this.#spans.attempted(record);
  }

  /** All attempts as they ended, in place of what was told before. */
  allEnded(attempts: readonly AttemptRecord<Candidate<SpeechEndpoint>>[]): void {
    this.#attempts = attempts;
    const last = attempts.at(-1);
    if (last !== undefined) this.#spans.ended(last);
  }

  /** Where the winner tells the tokens used. */
  reportsUsageBy(usage: () => TokenUsage | undefined): void {
    this.#usage = usage;
  }

  /** Audio was handed to the stream. */
  handedOut(bytes: Uint8Array): void {
    this.#usable.add(bytes);
  }

  /**
   * What the request came to; undefined without an attempt. It is charged for the whole input once usable audio was
   * handed out; where the upstream prices tokens and told none, for the most that it can have been.
   */
  end({ outcome, reason }: SynthesisEnd): PaidRequestEnd {
    const last = this.#attempts.at(-1);
    if (last === undefined) return undefined;
    const usage = this.#usage();
    this.#spans.ended({ outcome, reason }, usage);
    const inputCharacters = codePoints(this.#input);
    const listPriceNanoUsd = this.#usable.usable ? priceOf(last.endpoint, inputCharacters, usage) : 0n;
    const attempts = this.#attempts.map((record) =>
      record.outcome === Outcome.UNSPECIFIED ? endAttempt(record, { outcome, reason }, this.#clock) : record,
    );
    return {
      outcome,
      reason,
      endpoint: last.endpoint,
      attempts: attempts.map(toProtoAttempt),
      firstOutputAtMs:
        last.firstOutputMs === undefined ? undefined : Math.round(last.startedAtMs + last.firstOutputMs),
      tokens: toProtoTokens(usage),
      units: { inputCharacters: BigInt(inputCharacters) },
      byok: last.endpoint.ownKey !== undefined,
      costNanoUsd: chargeFor(last.endpoint, listPriceNanoUsd, this.#byokFeePercent),
      listPriceNanoUsd,
      cancelled: outcome === Outcome.CANCELLED,
      streamed: true,
    };
  }
}

function priceOf({ prices }: SpeechEndpoint, inputCharacters: number, usage: TokenUsage | undefined): bigint {
  if (usage === undefined) return mostSpeechCanCost(prices, inputCharacters);
  return listPrice(prices, {
    input_character: BigInt(inputCharacters),
    request: 1n,
    input_text_token: BigInt(usage.prompt),
    output_audio_token: BigInt(usage.completion),
  });
}
