/**
 * What a process that generates asks of account: holds, settlements, releases; those that are due at the same moment
 * go out as one call.
 *
 * 1. A reservation is repeated, with its id, while account is away, for at most `reserveTimeoutMs`; what is not answered
 *    by then has an unknown outcome and must be released.
 * 2. A settlement and a release are repeated until account has answered, or the process ends.
 */
import { create } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import { ExponentialBackoff, handleWhen, retry } from "cockatiel";
import {
  ReleaseRequestSchema,
  type Reservation,
  type ReservationOutcome,
  ReserveRequestSchema,
  type SettleOutcome,
  SettleRequestSchema,
} from "../../gen/media/account/v1/account_internal_pb.ts";
import type { AccountInternalService } from "../../gen/media/account/v1/account_internal_service_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { maxEventBytes } from "../events/event-message.ts";
import { BatchCall } from "../runtime/batch-call.ts";
import { DomainError } from "../runtime/domain-error.ts";
import type { Log } from "../runtime/log.ts";
import { type Span, silentSpan } from "../runtime/span.ts";
import { callFor, type Spanned, spanned } from "./spanned-call.ts";

/** What holds are asked with. */
export interface AccountHoldsOptions {
  readonly account: Pick<Client<typeof AccountInternalService>, "reserve" | "settle" | "release">;
  readonly log: Log;
  /** Longest wait for a reservation, repeats included; 5 s unless given. */
  readonly reserveTimeoutMs?: number;
}

/** A hold to give back. */
export interface ReleasedHold {
  readonly generationId: string;
  readonly accountId: string;
}

const maxItems = 256;
/** Messages between processes are at most 1 MiB. */
const maxBatchBytes = 768 * 1024;
const tryTimeoutMs = 2000;
const backoff = new ExponentialBackoff({ initialDelay: 50, maxDelay: 2000 });

/** The holds of this process's requests. */
export class AccountHolds {
  readonly #account: AccountHoldsOptions["account"];
  readonly #log: Log;
  readonly #reserveTimeoutMs: number;
  readonly #closing = new AbortController();
  readonly #reserves: BatchCall<Spanned<Reservation>, ReservationOutcome>;
  readonly #settlements: BatchCall<Spanned<GenerationEvent>, SettleOutcome>;
  readonly #releases: BatchCall<ReleasedHold, undefined>;
  #pendingReleases = 0;

  constructor({ account, log, reserveTimeoutMs = 5000 }: AccountHoldsOptions) {
    this.#account = account;
    this.#log = log;
    this.#reserveTimeoutMs = reserveTimeoutMs;
    const limits = { maxItems, maxWeight: maxBatchBytes };
    this.#reserves = new BatchCall({
      ...limits,
      maxInFlight: 4,
      weigh: ({ item }) => mostBytesOf(item.draft),
      run: (reservations) => this.#reserveAll(reservations),
    });
    this.#settlements = new BatchCall<Spanned<GenerationEvent>, SettleOutcome>({
      ...limits,
      maxInFlight: 4,
      weigh: ({ item }) => mostBytesOf(item),
      run: (events) => this.#settleAll(events),
    });
    this.#releases = new BatchCall({ ...limits, maxInFlight: 1, run: (holds) => this.#releaseAll(holds) });
  }

  /** Releases that account has not confirmed yet. */
  get pendingReleases(): number {
    return this.#pendingReleases;
  }

  /** Holds credit. Throws DomainError when the outcome is unknown: the id must then be released. */
  reserve(reservation: Reservation, span: Span = silentSpan): Promise<ReservationOutcome> {
    return spanned("hold credit", reservation, span, (due) => this.#reserves.call(due));
  }

  /** Reports how a request ended, until account has answered. Rejects only when the process ends before. */
  settle(event: GenerationEvent, span: Span = silentSpan): Promise<SettleOutcome> {
    return spanned("settle", event, span, (due) => this.#settlements.call(due));
  }

  release(hold: ReleasedHold): void {
    this.#pendingReleases += 1;
    const confirmed = () => {
      this.#pendingReleases -= 1;
    };
    this.#releases.call(hold).then(confirmed, confirmed);
  }

  /** Gives up what is not answered. */
  close(): void {
    this.#closing.abort();
  }

  async #reserveAll(due: readonly Spanned<Reservation>[]): Promise<readonly ReservationOutcome[]> {
    const request = create(ReserveRequestSchema, { reservations: due.map(({ item }) => item) });
    const { outcomes } = await this.#repeat(
      "credit can't be reserved yet",
      this.#reserveTimeoutMs, // 1.
      (options) => this.#account.reserve(request, { ...options, ...callFor(due) }),
    );
    return outcomes;
  }

  async #settleAll(due: readonly Spanned<GenerationEvent>[]): Promise<readonly SettleOutcome[]> {
    const request = create(SettleRequestSchema, { events: due.map(({ item }) => item) });
    // 2.
    const { outcomes } = await this.#repeat("requests can't be settled yet", undefined, (options) =>
      this.#account.settle(request, { ...options, ...callFor(due) }),
    );
    return outcomes;
  }

  async #releaseAll(holds: readonly ReleasedHold[]): Promise<readonly undefined[]> {
    const request = create(ReleaseRequestSchema, { holds: [...holds] });
    // 2.
    await this.#repeat("holds can't be released yet", undefined, (options) =>
      this.#account.release(request, options),
    );
    return holds.map(() => undefined);
  }

  /** Repeats a call while account is away, for `timeoutMs` after the first failure, or for good. */
  async #repeat<T>(
    complaint: string,
    timeoutMs: number | undefined,
    call: (options: CallOptions) => Promise<T>,
  ): Promise<T> {
    const once = () => {
      this.#closing.signal.throwIfAborted();
      return call({ timeoutMs: tryTimeoutMs });
    };
    try {
      return await once();
    } catch (thrown) {
      if (!isPassing(thrown)) throw thrown;
      this.#log.warn({ err: thrown }, complaint);
      const { signal } = this.#closing;
      const until =
        timeoutMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const again = retry(handleWhen(isPassing), { maxAttempts: Number.POSITIVE_INFINITY, backoff });
      return await again.dangerouslyUnref().execute(once, until);
    }
  }
}

/** Whether a failure may be over the next time: all but a call that account will never take. */
function isPassing(thrown: unknown): boolean {
  const { reason } = DomainError.from(thrown);
  return reason !== ErrorReason.INVALID_BODY && reason !== ErrorReason.CALLER_NOT_ALLOWED;
}

/** A bound of an event's size that costs nothing to know: only its trace can be large. */
function mostBytesOf(event: GenerationEvent | undefined): number {
  return event?.trace === undefined ? 8 * 1024 : maxEventBytes;
}
