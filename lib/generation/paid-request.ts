/**
 * The life that every paid request shares: credit is held before any attempt, and its end leaves one event.
 *
 * 1. The generation id is this process's own, made once for each request; no attempt begins before its hold is granted.
 * 2. A reservation of unknown outcome counts as granted: it is released, and no attempt follows.
 * 3. A request for which nothing was sent is released and leaves no event; any other leaves exactly one, built once.
 * 4. `end` may be called any number of times; the first decides.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ReservationOutcome, ReservationSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { Clock } from "../runtime/clock.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { AccountHolds } from "./account-holds.ts";
import type { DurableEventStore } from "./durable-event-store.ts";
import {
  draftEvent,
  type EventEndpoint,
  endEvent,
  type GenerationBeginning,
  type GenerationEnd,
} from "./generation-event.ts";
import type { ResolveOwnKeys } from "./own-keys.ts";
import type { RunningGenerations } from "./running-generations.ts";
import type { UsageDoubt } from "./usage-doubt.ts";

/** What paid requests of a process share. */
export interface PaidRequests {
  readonly holds: Pick<AccountHolds, "reserve" | "release">;
  readonly eventStore: Pick<DurableEventStore, "store" | "hasRoom">;
  readonly clock: Clock;
  readonly ownKeys: ResolveOwnKeys;
  /** What a request costs that an own key serves, percent of its list price. */
  readonly byokFeePercent: number;
  readonly running: Pick<RunningGenerations, "add">;
  /** Called with each reported usage that was not charged as it stands, for metrics. */
  readonly onUsageDoubt?: ((doubt: UsageDoubt) => void) | undefined;
}

/** What is asked of a paid request at its beginning. */
export interface PaidRequestOptions extends Omit<GenerationBeginning, "startedAtMs"> {
  /** The first that is to be tried. */
  readonly endpoint: EventEndpoint;
  /** The most that it can cost the account, nano-USD. */
  readonly amountNanoUsd: bigint;
  /** The most that own keys may serve of it, list price, nano-USD. */
  readonly byokAmountNanoUsd: bigint;
  /** When it has ended at the latest, Unix milliseconds; no attempt may begin after it. */
  readonly deadlineMs: number;
}

/** How a request ended; undefined when nothing was sent for it, so that it leaves no event. */
export type PaidRequestEnd =
  | (Omit<GenerationEnd, "endedAtMs"> & { readonly usageDoubt?: UsageDoubt | undefined })
  | undefined;

/** A request whose credit is held. */
export class PaidRequest {
  readonly #beginning: GenerationBeginning;
  readonly #requests: PaidRequests;
  #ended: Promise<void> | undefined;

  private constructor(beginning: GenerationBeginning, requests: PaidRequests) {
    this.#beginning = beginning;
    this.#requests = requests;
  }

  /** Holds credit. Throws `credits_exhausted`, `key_limit_reached`, `timed_out` or `service_unavailable`. */
  static async begin(options: PaidRequestOptions, requests: PaidRequests): Promise<PaidRequest> {
    const { endpoint, amountNanoUsd, byokAmountNanoUsd, deadlineMs, ...named } = options;
    const { holds, eventStore, clock } = requests;
    if (!eventStore.hasRoom) {
      throw new DomainError(ErrorReason.SERVICE_UNAVAILABLE, "too much usage waits to be stored");
    }
    const beginning = { ...named, startedAtMs: clock.nowMs() };
    const { generationId, attribution } = named;
    const { principal } = attribution;
    const reservation = create(ReservationSchema, {
      generationId,
      principal,
      amountNanoUsd,
      byokAmountNanoUsd,
      deadline: timestampFromMs(Math.ceil(deadlineMs)),
      draft: draftEvent(beginning, endpoint),
    });
    let outcome: ReservationOutcome;
    try {
      outcome = await holds.reserve(reservation, attribution.span);
    } catch (thrown) {
      holds.release({ generationId, accountId: principal.accountId }); // 2.
      throw thrown;
    }
    if (outcome !== ReservationOutcome.GRANTED) throw refusalOf(outcome); // 1.
    return new PaidRequest(beginning, requests);
  }

  /** Reports how it ended and resolves once its event is safe, or was waited for long enough. Never rejects. */
  end(end: PaidRequestEnd): Promise<void> {
    this.#ended ??= this.#end(end); // 4.
    return this.#ended;
  }

  async #end(end: PaidRequestEnd): Promise<void> {
    const { holds, eventStore, clock } = this.#requests;
    const { generationId, attribution } = this.#beginning;
    if (end === undefined) {
      holds.release({ generationId, accountId: attribution.principal.accountId }); // 3.
      return;
    }
    await eventStore.store(endEvent(this.#beginning, { ...end, endedAtMs: clock.nowMs() }), attribution.span);
  }
}

const refusals: Readonly<Partial<Record<ReservationOutcome, readonly [ErrorReason, string]>>> = {
  [ReservationOutcome.CREDITS_EXHAUSTED]: [ErrorReason.CREDITS_EXHAUSTED, "the account lacks credits"],
  [ReservationOutcome.KEY_LIMIT_REACHED]: [ErrorReason.KEY_LIMIT_REACHED, "the key's limit is reached"],
  [ReservationOutcome.TOO_LATE]: [ErrorReason.TIMED_OUT, "credit could not be reserved in time"],
};

function refusalOf(outcome: ReservationOutcome): DomainError {
  const [reason, message] = refusals[outcome] ?? [
    ErrorReason.INTERNAL,
    "an id was decided before its request",
  ];
  return new DomainError(reason, message);
}
