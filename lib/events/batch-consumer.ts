/**
 * Takes in generation events for a service.
 *
 * 1. Nothing is consumed before it is known that the topic keeps messages no longer than copies can be recognized.
 * 2. Events are applied in the order in which they stand in their partition; what can't be decoded or is too old is not.
 * 3. The group goes on behind a message once it is applied, or durable on the dead-letter topic. A message that can't
 *    be applied never holds up those behind it; a failure that is not the message's makes the whole batch come again.
 */
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { type Span, silentTracer, type Tracer } from "../runtime/span.ts";
import type { Bus, BusConsumer, BusMessage } from "./bus.ts";
import { checkRetention } from "./check-retention.ts";
import { type DeadLetter, sendDeadLetters } from "./dead-letter.ts";
import { type BytesOfEvent, bytesOfEvent, endedAtMs, fromEventMessage } from "./event-message.ts";
import { beginProcessing } from "./message-spans.ts";
import { generationEventsTopic } from "./topics.ts";

/** An event that a store will never take, and why. */
export interface RefusedEvent {
  readonly eventId: string;
  readonly revision: number;
  /** For people: it stands on the message in the dead-letter topic and in the log. */
  readonly reason: string;
}

/** How a service takes in events. */
export interface EventConsumerOptions {
  readonly bus: Pick<Bus, "consume" | "retentionMs" | "send" | "system">;
  readonly group: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Events that ended longer ago go to the dead letter, milliseconds. The topic must not keep messages longer. */
  readonly maxAgeMs: number;
  /** 500 unless given. */
  readonly maxBatchMessages?: number;
  /** Goes on with the traces of events; records nothing unless given. */
  readonly tracer?: Tracer;
  /**
   * Stores the events all or nothing, in this order, and returns those that it refuses for good; throws when they must
   * come again. Never called with none. `bytesOf` gives the bytes that an event came as.
   */
  apply(
    events: readonly GenerationEvent[],
    signal: AbortSignal,
    bytesOf: BytesOfEvent,
  ): Promise<readonly RefusedEvent[]>;
  /**
   * Whether a failure of `apply` lies in the events and not in what it works with: then they are tried in ever smaller
   * parts, and the bad one goes to the dead letter.
   */
  isPoison(error: unknown): boolean;
}

const defaultMaxBatchMessages = 500;

interface Decoded {
  readonly message: BusMessage;
  readonly event: GenerationEvent;
}

/** A service's reading of the events, with counts for metrics. Goes on in the background and waits for a bus that is away. */
export class EventConsumer {
  /**
   * Resolves with the reason when nothing can ever be consumed, since the topic keeps messages longer than `maxAgeMs`:
   * the process has to end. Otherwise it stays pending.
   */
  readonly failed: Promise<Error>;
  readonly #options: EventConsumerOptions;
  readonly #clock: Clock;
  readonly #stopping = new AbortController();
  readonly #starting: Promise<void>;
  #consumer: BusConsumer | undefined;
  #deadLettered = 0;
  #applied = 0;

  constructor(options: EventConsumerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const failed = Promise.withResolvers<Error>();
    this.failed = failed.promise;
    this.#starting = this.#start(failed.resolve);
  }

  /** Whether the group's place could be read lately. */
  get connected(): boolean {
    return this.#consumer?.connected ?? false;
  }

  /** Messages that wait; undefined while it is not known. */
  get lag(): number | undefined {
    return this.#consumer?.lag;
  }

  /** Messages put onto the dead-letter topic. */
  get deadLettered(): number {
    return this.#deadLettered;
  }

  /** Events handed to the store and not refused; copies count again. */
  get applied(): number {
    return this.#applied;
  }

  /** Lets the running batch end and leaves the group. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#starting;
    await this.#consumer?.leave();
  }

  async #start(fail: (error: Error) => void): Promise<void> {
    const { bus, group, log, maxAgeMs, maxBatchMessages = defaultMaxBatchMessages } = this.#options;
    const topic = generationEventsTopic;
    try {
      await checkRetention({ bus, topic, maxAgeMs, log, signal: this.#stopping.signal }); // 1.
    } catch (thrown) {
      if (this.#stopping.signal.aborted) return;
      log.fatal({ err: thrown, group }, "events can't be consumed");
      fail(thrown instanceof Error ? thrown : new Error(String(thrown)));
      return;
    }
    if (this.#stopping.signal.aborted) return;
    const handle = (batch: readonly BusMessage[], signal: AbortSignal) => this.#handle(batch, signal);
    this.#consumer = bus.consume({ topic, group, maxBatchMessages, handle });
  }

  async #handle(batch: readonly BusMessage[], signal: AbortSignal): Promise<void> {
    const { tracer = silentTracer, bus, group } = this.#options;
    const spans = beginProcessing(tracer, bus, group, batch);
    try {
      await this.#takeIn(batch, signal, spans);
      for (const span of spans.values()) span.end();
    } catch (thrown) {
      for (const span of spans.values()) span.end("comes_again");
      throw thrown;
    }
  }

  async #takeIn(
    batch: readonly BusMessage[],
    signal: AbortSignal,
    spans: ReadonlyMap<BusMessage, Span>,
  ): Promise<void> {
    const letters: DeadLetter[] = [];
    const decoded: Decoded[] = [];
    for (const message of batch) {
      const event = fromEventMessage(message);
      if (event === undefined) letters.push({ message, reason: "undecodable" });
      else if (this.#isTooOld(event)) letters.push({ message, reason: "too_old", eventId: event.eventId });
      else decoded.push({ message, event });
    }
    const refused = await this.#apply(decoded, signal); // 2.
    letters.push(...refused);
    await sendDeadLetters(this.#options, letters, signal); // 3.
    this.#applied += decoded.length - refused.length;
    this.#deadLettered += letters.length;
    for (const letter of letters) this.#logLetter(letter, spans.get(letter.message));
  }

  #isTooOld(event: GenerationEvent): boolean {
    return endedAtMs(event) < this.#clock.nowMs() - this.#options.maxAgeMs;
  }

  /** Applies all in order, halving what fails for its own sake until the bad one stands alone. */
  async #apply(decoded: readonly Decoded[], signal: AbortSignal): Promise<DeadLetter[]> {
    const [first] = decoded;
    if (first === undefined) return [];
    try {
      const bytes = new Map(decoded.map(({ event, message }) => [event, message.value]));
      const refused = await this.#options.apply(
        decoded.map(({ event }) => event),
        signal,
        (event) => bytes.get(event) ?? bytesOfEvent(event),
      );
      return lettersOf(decoded, refused);
    } catch (thrown) {
      if (!this.#options.isPoison(thrown)) throw thrown; // 3.
      const { log, group } = this.#options;
      log.warn({ err: thrown, group, events: decoded.length }, "events can't be applied as they are");
      if (decoded.length === 1) {
        return [{ message: first.message, reason: "poison", eventId: first.event.eventId }];
      }
    }
    const middle = Math.ceil(decoded.length / 2);
    const before = await this.#apply(decoded.slice(0, middle), signal);
    return [...before, ...(await this.#apply(decoded.slice(middle), signal))];
  }

  #logLetter({ message, reason, eventId }: DeadLetter, span: Span | undefined): void {
    const { topic, partition, offset } = message;
    const place = { topic, partition, offset: String(offset) };
    const { log, group } = this.#options;
    log.error({ ...place, group, reason, generation_id: eventId, ...span?.logFields }, "event quarantined");
    span?.end("quarantined");
  }
}

function lettersOf(decoded: readonly Decoded[], refused: readonly RefusedEvent[]): DeadLetter[] {
  const reasons = new Map(refused.map(({ eventId, revision, reason }) => [`${eventId}/${revision}`, reason]));
  return decoded.flatMap(({ message, event: { eventId, revision } }) => {
    const reason = reasons.get(`${eventId}/${revision}`);
    return reason === undefined ? [] : [{ message, reason, eventId }];
  });
}
