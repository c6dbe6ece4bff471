/**
 * Where the events of ended requests become durable: on the bus and at account.
 *
 * 1. Account is sent it at once, the bus a moment later, or with what gathers meanwhile once account has it; each is sent
 *    it again until it has answered, and whichever answers first has made the event safe.
 * 2. An event that is nowhere safe yet is never dropped; where it is safe at one, the other may be given up: account
 *    publishes what it has not consumed from the bus, and settles what it consumes there.
 * 3. When too much is waiting, `hasRoom` says so, and new requests must be refused.
 */

import { SettleOutcome } from "../../gen/media/account/v1/account_internal_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { type Bus, PublishError } from "../events/bus.ts";
import { toEventMessage } from "../events/event-message.ts";
import { beginSending, withTrace } from "../events/message-spans.ts";
import { EvictedError, type QueuedMessage, SendQueue, type SendQueueStats } from "../events/send-queue.ts";
import { generationEventsTopic } from "../events/topics.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { type Span, silentSpan } from "../runtime/span.ts";
import { withLimit } from "../runtime/with-limit.ts";
import type { AccountHolds } from "./account-holds.ts";

/** `bus` and `holds` are closed by whoever made them. */
export interface DurableEventStoreOptions {
  readonly bus: Pick<Bus, "send" | "system">;
  readonly holds: Pick<AccountHolds, "settle" | "pendingReleases">;
  readonly log: Log;
  readonly clock?: Clock;
  /** Longest that `store` waits for a confirmation, milliseconds. */
  readonly waitMs: number;
  /** No more room from so many events on that account has not answered for; 20,000 unless given. */
  readonly maxUnsettled?: number;
  /** Is shown each event before it is stored, for metrics. */
  readonly onEvent?: ((event: GenerationEvent) => void) | undefined;
}

const defaultMaxUnsettled = 20_000;
/** How long an event that account holds waits to go onto the bus with others: a send for each would cost far more. */
const gatherMs = 100;

/** Where this process's events go. */
export class DurableEventStore {
  readonly #options: DurableEventStoreOptions;
  readonly #queue: SendQueue;
  readonly #unsafe = new Set<Promise<void>>();
  #unsettled = 0;
  #closed = false;

  constructor(options: DurableEventStoreOptions) {
    const { bus, log, clock = systemClock } = options;
    this.#options = options;
    this.#queue = new SendQueue({ bus, topic: generationEventsTopic, log, clock, gatherMs });
  }

  /** Whether there is memory for another request's event. */
  get hasRoom(): boolean {
    const { holds, maxUnsettled = defaultMaxUnsettled } = this.#options;
    return this.#queue.hasRoom && this.#unsettled + holds.pendingReleases < maxUnsettled; // 3.
  }

  /** Events that account has not answered for yet. */
  get unsettled(): number {
    return this.#unsettled;
  }

  /** Of the events on their way to the bus. */
  get publisherFigures(): SendQueueStats {
    return this.#queue.stats;
  }

  /**
   * Stores an event in both places and resolves when the first has it, or after `waitMs`: true when it is safe by then.
   * It is stored in the background all the same. Call once for each event. What ends after `close` was cut by that: its
   * outcome is not known, so it is lost.
   */
  async store(event: GenerationEvent, span: Span = silentSpan): Promise<boolean> {
    if (this.#closed) return false;
    this.#options.onEvent?.(event);
    const queued = this.#publish(event, span);
    const settled = this.#settle(event, span).then(queued.isKeptElsewhere); // 2.
    const safe = Promise.any([queued.confirmed, settled]); // 1.
    const tracked = safe.catch((thrown: unknown) => {
      this.#options.log.error({ err: thrown, generation_id: event.eventId }, "event could not be stored");
    });
    this.#unsafe.add(tracked);
    void tracked.then(() => this.#unsafe.delete(tracked));
    return withLimit(safe, { timeoutMs: this.#options.waitMs }).then(
      () => true,
      () => false,
    );
  }

  /** Resolves when every event is safe in one place and none waits for the bus, or after `timeoutMs`. */
  async flush(timeoutMs: number): Promise<void> {
    const byMs = performance.now() + timeoutMs;
    await withLimit(Promise.all(this.#unsafe), { timeoutMs }).catch(() => undefined);
    await this.#queue.flush(Math.max(0, Math.min(byMs - performance.now(), longestBusWaitMs)));
  }

  /** Takes no more events, waits for at most `timeoutMs` as `flush` does, and gives up what still waits for the bus. */
  async close(timeoutMs: number): Promise<void> {
    this.#closed = true;
    await this.flush(timeoutMs);
    this.#queue.close();
  }

  /** Consumers go on with the span of the event's way. */
  #publish(event: GenerationEvent, parent: Span): QueuedMessage {
    const span = beginSending(parent, this.#options.bus, event);
    const queued = this.#queue.add(withTrace(toEventMessage(event), span));
    queued.confirmed.then(
      () => span.end(),
      (thrown: unknown) => {
        span.end(failureOf(thrown));
        if (!(thrown instanceof PublishError)) return;
        const fields = { err: thrown, generation_id: event.eventId };
        this.#options.log.error(fields, "event can't be published and is left out");
      },
    );
    return queued;
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

function failureOf(thrown: unknown): string {
  if (thrown instanceof PublishError) return "refused";
  return thrown instanceof EvictedError ? "let_go" : "given_up";
}
