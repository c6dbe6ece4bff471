/**
 * Puts a process's events onto the bus.
 *
 * 1. An event goes out at the end of the event loop's turn in which it came, or behind the batch under way: the first
 *    never waits for company.
 * 2. One batch at a time; a batch that fails is sent again, the same bytes, until it succeeds: copies are harmless.
 * 3. An event that the bus will never take is quarantined with a log line, and those beside it go on.
 * 4. What is in memory is bounded: events with another home are let go of when many wait, and `hasRoom` tells when even
 *    those without one are too many. An event without another home is never dropped.
 */
import { ExponentialBackoff, handleWhen, retry } from "cockatiel";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { type Span, silentSpan } from "../runtime/span.ts";
import { type Bus, type OutgoingMessage, PublishError } from "./bus.ts";
import { toEventMessage } from "./event-message.ts";
import { beginSending, withTrace } from "./message-spans.ts";
import { generationEventsTopic } from "./topics.ts";

/** What a publisher works with. */
export interface EventPublisherOptions {
  readonly bus: Pick<Bus, "send" | "system">;
  readonly log: Log;
  readonly clock?: Clock;
  /** Beyond so many waiting events those with another home are let go of; 2,000 unless given. */
  readonly manyEvents?: number;
  /** No more room from so many bytes of waiting events on; 64 MiB unless given. */
  readonly maxPendingBytes?: number;
  /** How long one send may take before it is given up and sent again; 30 s unless given. */
  readonly sendTimeoutMs?: number;
}

/** An event on its way. */
export interface Publication {
  /** Resolves once the event is durable on the bus; rejects when it never will be, or was let go of. */
  readonly confirmed: Promise<void>;
  /** Tells that the event has another durable home: it may be let go of. */
  hasOtherHome(): void;
}

/** Figures of a publisher, for metrics. */
export interface PublisherFigures {
  /** Events that wait or are under way. */
  readonly pending: number;
  readonly pendingBytes: number;
  /** How long the oldest of them has waited. */
  readonly oldestMs: number;
  readonly published: number;
  /** Sends that failed and were repeated. */
  readonly failures: number;
  readonly quarantined: number;
  /** Events let go of because they had another home. */
  readonly letGo: number;
}

interface Waiting {
  readonly eventId: string;
  readonly message: OutgoingMessage;
  readonly sinceMs: number;
  readonly span: Span;
  readonly done: PromiseWithResolvers<void>;
  otherHome: boolean;
}

const maxBatchMessages = 500;
const maxBatchBytes = 512 * 1024;
const pauses = new ExponentialBackoff({ initialDelay: 100, maxDelay: 5000 });
const untilTaken = {
  policy: handleWhen((error) => !(error instanceof PublishError)),
  options: { maxAttempts: Number.POSITIVE_INFINITY, backoff: pauses },
};

/** The events of this process on their way to the bus. */
export class EventPublisher {
  readonly #bus: Pick<Bus, "send" | "system">;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #manyEvents: number;
  readonly #maxPendingBytes: number;
  readonly #sendTimeoutMs: number;
  readonly #closing = new AbortController();
  readonly #idle = new Set<() => void>();
  #waiting: Waiting[] = [];
  #sending: readonly Waiting[] = [];
  #pendingBytes = 0;
  #scheduled = false;
  #withOtherHome = 0;
  #counts = { published: 0, failures: 0, quarantined: 0, letGo: 0 };

  constructor(options: EventPublisherOptions) {
    this.#bus = options.bus;
    this.#log = options.log;
    this.#clock = options.clock ?? systemClock;
    this.#manyEvents = options.manyEvents ?? 2000;
    this.#maxPendingBytes = options.maxPendingBytes ?? 64 * 1024 * 1024;
    this.#sendTimeoutMs = options.sendTimeoutMs ?? 30_000;
  }

  /** Whether another event would be within the bound. */
  get hasRoom(): boolean {
    return this.#pendingBytes < this.#maxPendingBytes;
  }

  get figures(): PublisherFigures {
    const oldest = this.#sending[0] ?? this.#waiting[0];
    return {
      ...this.#counts,
      pending: this.#waiting.length + this.#sending.length,
      pendingBytes: this.#pendingBytes,
      oldestMs: oldest === undefined ? 0 : this.#clock.monotonicMs() - oldest.sinceMs,
    };
  }

  /** Takes an event and sends it in the background; consumers go on with its span. */
  publish(event: GenerationEvent, parent: Span = silentSpan): Publication {
    const span = beginSending(parent, this.#bus, event);
    const waiting: Waiting = {
      eventId: event.eventId,
      message: withTrace(toEventMessage(event), span),
      span,
      sinceMs: this.#clock.monotonicMs(),
      done: Promise.withResolvers(),
      otherHome: false,
    };
    // Whoever does not look at it need not know.
    waiting.done.promise.catch(() => undefined);
    this.#waiting.push(waiting);
    this.#pendingBytes += waiting.message.value.length;
    this.#schedule();
    return { confirmed: waiting.done.promise, hasOtherHome: () => this.#hasOtherHome(waiting) };
  }

  /** Resolves when nothing waits any more; false when `timeoutMs` passed before. */
  flush(timeoutMs: number): Promise<boolean> {
    if (this.#waiting.length + this.#sending.length === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const end = (flushed: boolean) => {
        clearTimeout(timer);
        this.#idle.delete(onIdle);
        resolve(flushed);
      };
      const onIdle = () => end(true);
      const timer = setTimeout(end, timeoutMs, false);
      this.#idle.add(onIdle);
    });
  }

  /** Gives up what still waits; the bus stays open. */
  close(): void {
    this.#closing.abort();
    for (const waiting of this.#waiting.splice(0)) {
      waiting.span.end("given_up");
      waiting.done.reject(new Error("the publisher was closed"));
    }
  }

  #hasOtherHome(waiting: Waiting): void {
    if (waiting.otherHome) return;
    waiting.otherHome = true;
    this.#withOtherHome += 1;
    if (this.#waiting.length > this.#manyEvents && this.#withOtherHome * 2 > this.#manyEvents) this.#letGo();
  }

  #letGo(): void {
    const gone = this.#waiting.filter(({ otherHome }) => otherHome);
    this.#waiting = this.#waiting.filter(({ otherHome }) => !otherHome);
    this.#counts.letGo += gone.length;
    for (const waiting of gone) {
      this.#settle(waiting, () => waiting.done.reject(new Error("let go of")), "let_go");
    }
  }

  #schedule(): void {
    if (this.#scheduled || this.#sending.length > 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#closing.signal.aborted) {
      this.#sending = this.#waiting.splice(0, this.#batchLength());
      await this.#sendUntilTaken(this.#sending);
      this.#sending = [];
    }
    for (const wake of [...this.#idle]) wake();
  }

  #batchLength(): number {
    let bytes = 0;
    const index = this.#waiting.findIndex(({ message }, position) => {
      bytes += message.value.length;
      return position >= maxBatchMessages || (position > 0 && bytes > maxBatchBytes);
    });
    return index < 0 ? this.#waiting.length : index;
  }

  async #sendUntilTaken(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#send(batch).catch((thrown) => this.#sendAgain(batch, thrown));
      this.#counts.published += batch.length;
      for (const waiting of batch) this.#settle(waiting, waiting.done.resolve);
    } catch (thrown) {
      if (thrown instanceof PublishError) await this.#quarantineBadOnes(batch, thrown);
      else for (const waiting of batch) this.#settle(waiting, () => waiting.done.reject(thrown), "given_up");
    }
  }

  async #sendAgain(batch: readonly Waiting[], thrown: unknown): Promise<void> {
    if (thrown instanceof PublishError || this.#closing.signal.aborted) throw thrown;
    this.#counts.failures += 1;
    this.#log.warn({ err: thrown, events: batch.length }, "events can't be published yet");
    const again = retry(untilTaken.policy, untilTaken.options).dangerouslyUnref();
    again.onRetry(() => {
      this.#counts.failures += 1;
    });
    await again.execute(() => this.#send(batch), this.#closing.signal);
  }

  async #send(batch: readonly Waiting[]): Promise<void> {
    this.#closing.signal.throwIfAborted();
    const limit = new AbortController();
    const stop = () => limit.abort(new DOMException("not taken in time", "TimeoutError"));
    const timer = setTimeout(stop, this.#sendTimeoutMs);
    this.#closing.signal.addEventListener("abort", stop, { once: true });
    try {
      const messages = batch.map(({ message }) => message);
      await this.#bus.send(generationEventsTopic, messages, limit.signal);
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener("abort", stop);
    }
  }

  async #quarantineBadOnes(batch: readonly Waiting[], error: PublishError): Promise<void> {
    const [only] = batch;
    if (batch.length > 1 || only === undefined) {
      for (const waiting of batch) await this.#sendUntilTaken([waiting]);
      return;
    }
    this.#counts.quarantined += 1;
    this.#log.error({ err: error, generation_id: only.eventId }, "event can't be published and is left out");
    this.#settle(only, () => only.done.reject(error), "refused");
  }

  #settle(waiting: Waiting, tell: () => void, failure?: string): void {
    this.#pendingBytes -= waiting.message.value.length;
    if (waiting.otherHome) this.#withOtherHome -= 1;
    waiting.span.end(failure);
    tell();
  }
}
