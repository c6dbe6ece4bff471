/**
 * The two durable homes of an event: the bus and account.
 *
 * 1. Both are told at once and each is told again until it has answered; whichever answers first has made the event safe.
 * 2. An event that is nowhere safe yet is never dropped; where it is safe in one home, the other may be given up: account
 *    publishes what it has not met on the bus, and settles what it meets there.
 * 3. When too much is waiting, `hasRoom` says so, and new requests must be refused.
 */
import { SettleOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { EventPublisher } from "../events/publisher.ts";
import type { Log } from "../runtime/log.ts";
import { type Span, silentSpan } from "../runtime/span.ts";
import type { AccountHolds } from "./account-holds.ts";

/** What homes are made of. */
export interface EventHomesOptions {
  readonly publisher: EventPublisher;
  readonly holds: Pick<AccountHolds, "settle" | "pendingReleases">;
  readonly log: Log;
  /** Longest that `store` waits for a confirmation, milliseconds. */
  readonly waitMs: number;
  /** No more room from so many events on that account has not answered for; 20,000 unless given. */
  readonly maxUnsettled?: number;
  /** Is shown each event before it is stored, for metrics. */
  readonly onEvent?: ((event: GenerationEvent) => void) | undefined;
}

const defaultMaxUnsettled = 20_000;

/** Where this process's events go. */
export class EventHomes {
  readonly #options: EventHomesOptions;
  readonly #unsafe = new Set<Promise<void>>();
  #unsettled = 0;

  constructor(options: EventHomesOptions) {
    this.#options = options;
  }

  /** Whether there is memory for another request's event. */
  get hasRoom(): boolean {
    const { publisher, holds, maxUnsettled = defaultMaxUnsettled } = this.#options;
    return publisher.hasRoom && this.#unsettled + holds.pendingReleases < maxUnsettled;
  }

  /** Events that account has not answered for yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /**
   * Stores an event in both homes and resolves when the first has it, or after `waitMs`: true when it is safe by then.
   * It is stored in the background all the same. Call once for each event.
   */
  async store(event: GenerationEvent, span: Span = silentSpan): Promise<boolean> {
    this.#options.onEvent?.(event);
    const publication = this.#options.publisher.publish(event, span);
    const settled = this.#settle(event, span).then(publication.hasOtherHome);
    const safe = Promise.any([publication.confirmed, settled]);
    const tracked = safe.catch((thrown: unknown) => {
      this.#options.log.error({ err: thrown, generation_id: event.eventId }, "event has no home");
    });
    this.#unsafe.add(tracked);
    void tracked.then(() => this.#unsafe.delete(tracked));
    return within(safe, this.#options.waitMs);
  }

  /** Resolves when every event is safe in one home and none waits for the bus, or after `timeoutMs`. */
  async flush(timeoutMs: number): Promise<void> {
    const byMs = performance.now() + timeoutMs;
    await within(Promise.all(this.#unsafe), timeoutMs);
    await this.#options.publisher.flush(Math.max(0, Math.min(byMs - performance.now(), longestBusWaitMs)));
  }

  async #settle(event: GenerationEvent, span: Span): Promise<void> {
    this.#unsettled += 1;
    try {
      const outcome = await this.#options.holds.settle(event, span);
      if (outcome === SettleOutcome.STORED) return;
      this.#options.log.error({ generation_id: event.eventId, outcome }, "account did not take an event");
      throw new Error("account did not take the event");
    } finally {
      this.#unsettled -= 1;
    }
  }
}

/** What an event that account holds may still wait for the bus when its process stops, milliseconds. */
const longestBusWaitMs = 2000;

async function within(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, timeoutMs, false);
  try {
    return await Promise.race([
      work.then(
        () => true,
        () => false,
      ),
      late.promise,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
