/**
 * Messages on their way to a topic: whatever is put onto the bus goes through a queue, which waits, batches and retries.
 *
 * 1. A message goes out at the end of the event loop's turn in which it came, or behind the batch under way: the first
 *    never waits for company. Of a queue that gathers it waits, for a moment, to be kept elsewhere, and then, for
 *    `gatherMs`, for company; what isn't kept elsewhere by then takes all others along.
 * 2. One batch at a time, in the order in which messages came; a batch that fails is sent again, the same bytes, until
 *    it succeeds: copies are harmless.
 * 3. A message that the bus will never take is found by halving and refused, and those beside it go on.
 * 4. What is in memory is bounded: messages that are kept elsewhere are evicted when many wait, and `hasRoom` says when
 *    even the others are too many. A message that is kept nowhere else is only dropped when its sender says so.
 */
import { ExponentialBackoff, handleWhen, retry } from "cockatiel";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { cutByWeight } from "../runtime/cut-by-weight.ts";
import type { Log } from "../runtime/log.ts";
import { type Bus, type OutgoingMessage, PublishError } from "./bus.ts";
import { type Gathered, Gathering } from "./gathering.ts";

/** Where the messages of a queue go, and how many of them may wait. */
export interface SendQueueOptions {
  readonly bus: Pick<Bus, "send">;
  readonly topic: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Beyond so many waiting messages those kept elsewhere are evicted; 2,000 unless given. */
  readonly manyMessages?: number;
  /** No more room from so many waiting messages on; 100,000 unless given. */
  readonly maxPendingMessages?: number;
  /** No more room from so many of their bytes on; 64 MiB unless given. */
  readonly maxPendingBytes?: number;
  /** How long a message that is kept elsewhere may wait for company, milliseconds; not at all unless given. */
  readonly gatherMs?: number;
  /** How long one try may take before it is given up and made again; 30 s unless given. */
  readonly sendTimeoutMs?: number;
}

/** A message on its way. */
export interface QueuedMessage {
  /** Resolves once the message is durable on the bus; rejects when it never will be, or was given up. */
  readonly confirmed: Promise<void>;
  /** Marks the message as durable elsewhere: it may be evicted. */
  isKeptElsewhere(): void;
  /** Gives the message up, for this reason, unless that is decided; one under way may arrive all the same. */
  giveUp(reason: unknown): void;
}

/** What a queue holds now, and counts since the process began; for metrics. */
export interface SendQueueStats {
  /** Messages that wait or are under way. */
  readonly pending: number;
  readonly pendingBytes: number;
  readonly oldestMs: number;
  readonly published: number;
  /** Tries that failed and were repeated. */
  readonly failures: number;
  /** Messages that the bus will never take. */
  readonly quarantined: number;
  /** Messages evicted because they are kept elsewhere. */
  readonly evicted: number;
}

/** A message was evicted from a long queue: it is kept elsewhere. */
export class EvictedError extends Error {
  override readonly name = "EvictedError";
}

interface Waiting extends Gathered {
  readonly message: OutgoingMessage;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly done: PromiseWithResolvers<void>;
  keptElsewhere: boolean;
  lookedAt: boolean;
  settled: boolean;
}

/** Brokers take 1 MiB for each partition of a request unless told otherwise, batch and headers included. */
const batchLimits = { maxItems: 500, maxWeight: 512 * 1024, weigh: ({ bytes }: Waiting) => bytes };
const pauses = new ExponentialBackoff({ initialDelay: 100, maxDelay: 2000 });
const untilTaken = {
  policy: handleWhen((error) => !(error instanceof PublishError)),
  options: { maxAttempts: Number.POSITIVE_INFINITY, backoff: pauses },
};

/** The messages of a process, or of one task of it, for one topic. */
export class SendQueue {
  readonly #options: SendQueueOptions;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  readonly #idle = new Set<() => void>();
  #waiting: Waiting[] = [];
  #sending: readonly Waiting[] = [];
  #pending = 0;
  #pendingBytes = 0;
  #keptElsewhere = 0;
  /** How many of those that wait are to be sent now. */
  #due = 0;
  #scheduled = false;
  readonly #gathering: Gathering | undefined;
  #counts = { published: 0, failures: 0, quarantined: 0, evicted: 0 };

  constructor(options: SendQueueOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const { gatherMs } = options;
    if (gatherMs !== undefined)
      this.#gathering = new Gathering({
        gatherMs,
        waiting: () => this.#waiting.slice(this.#due),
        over: () => this.#sendNow(),
      });
  }

  /** Whether another message would be within the bound. */
  get hasRoom(): boolean {
    const { maxPendingMessages = 100_000, maxPendingBytes = 64 * 1024 * 1024 } = this.#options;
    return this.#pendingBytes < maxPendingBytes && this.#pending < maxPendingMessages; // 4.
  }

  get stats(): SendQueueStats {
    const oldest = [...this.#sending, ...this.#waiting.slice(0, 1)].find(({ settled }) => !settled);
    return {
      ...this.#counts,
      pending: this.#pending,
      pendingBytes: this.#pendingBytes,
      oldestMs: oldest === undefined ? 0 : this.#clock.monotonicMs() - oldest.sinceMs,
    };
  }

  add(message: OutgoingMessage): QueuedMessage {
    const waiting: Waiting = {
      message,
      bytes: bytesOf(message),
      sinceMs: this.#clock.monotonicMs(),
      done: Promise.withResolvers(),
      keptElsewhere: false,
      lookedAt: false,
      settled: false,
    };
    // Whoever does not look at it need not know.
    waiting.done.promise.catch(() => undefined);
    this.#waiting.push(waiting);
    this.#pending += 1;
    this.#pendingBytes += waiting.bytes;
    if (this.#gathering === undefined || this.#waiting.length >= batchLimits.maxItems) this.#schedule();
    else this.#gathering.join();
    return {
      confirmed: waiting.done.promise,
      isKeptElsewhere: () => this.#isKeptElsewhere(waiting),
      giveUp: (reason) => this.#settle(waiting, reason),
    };
  }

  /** Resolves when nothing waits any more; false when `timeoutMs` passed before. */
  flush(timeoutMs: number): Promise<boolean> {
    if (this.#pending === 0) return Promise.resolve(true);
    this.#sendNow();
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
    this.#gathering?.stop();
    for (const waiting of this.#waiting.splice(0)) this.#settle(waiting, new Error("the queue was closed"));
  }

  #isKeptElsewhere(waiting: Waiting): void {
    if (waiting.keptElsewhere || waiting.settled) return;
    waiting.keptElsewhere = true;
    this.#keptElsewhere += 1;
    const { manyMessages = 2000 } = this.#options;
    if (this.#waiting.length > manyMessages && this.#keptElsewhere * 2 > manyMessages)
      this.#evictKeptElsewhere();
  }

  #evictKeptElsewhere(): void {
    const gone = this.#waiting.filter(({ keptElsewhere }) => keptElsewhere); // 4.
    this.#waiting = this.#waiting.filter(({ keptElsewhere }) => !keptElsewhere);
    this.#counts.evicted += gone.length;
    for (const waiting of gone) this.#settle(waiting, new EvictedError("let go of"));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#sendNow(); // 1.
    });
  }

  /** Sends all that waits, behind the batch under way. */
  #sendNow(): void {
    this.#gathering?.stop();
    this.#due = this.#waiting.length;
    if (this.#sending.length === 0) void this.#sendDue();
  }

  async #sendDue(): Promise<void> {
    while (this.#due > 0 && this.#waiting.length > 0 && !this.#closing.signal.aborted) {
      this.#sending = cutByWeight(this.#waiting, batchLimits); // 2.
      this.#due -= this.#sending.length;
      await this.#sendUntilTaken(this.#sending);
    }
    this.#sending = [];
  }

  async #sendUntilTaken(batch: readonly Waiting[]): Promise<void> {
    try {
      await this.#try(batch).catch((thrown) => this.#tryAgain(batch, thrown));
      for (const waiting of batch) this.#settle(waiting);
    } catch (thrown) {
      if (thrown instanceof PublishError) await this.#refuse(batch, thrown);
      else for (const waiting of batch) this.#settle(waiting, thrown);
    }
  }

  async #tryAgain(batch: readonly Waiting[], thrown: unknown): Promise<void> {
    const { log, topic } = this.#options;
    if (thrown instanceof PublishError || this.#closing.signal.aborted) throw thrown;
    this.#counts.failures += 1;
    log.warn({ err: thrown, topic, messages: batch.length }, "messages can't be sent yet");
    const again = retry(untilTaken.policy, untilTaken.options).dangerouslyUnref();
    again.onRetry(() => {
      this.#counts.failures += 1;
    });
    await again.execute(() => this.#try(batch), this.#closing.signal); // 2.
    if (batch.some(({ settled }) => !settled)) log.info({ topic }, "messages can be sent again");
  }

  /** Sends what has not been given up meanwhile. */
  async #try(batch: readonly Waiting[]): Promise<void> {
    const { bus, topic, sendTimeoutMs = 30_000 } = this.#options;
    this.#closing.signal.throwIfAborted();
    const messages = batch.filter(({ settled }) => !settled).map(({ message }) => message);
    if (messages.length === 0) return;
    const limit = new AbortController();
    const stop = () => limit.abort(new DOMException("not taken in time", "TimeoutError"));
    const timer = setTimeout(stop, sendTimeoutMs);
    this.#closing.signal.addEventListener("abort", stop, { once: true });
    try {
      await bus.send(topic, messages, limit.signal);
    } finally {
      clearTimeout(timer);
      this.#closing.signal.removeEventListener("abort", stop);
    }
  }

  async #refuse(batch: readonly Waiting[], error: PublishError): Promise<void> {
    const [only] = batch;
    if (only !== undefined && batch.length === 1) {
      this.#settle(only, error);
      return;
    }
    const middle = Math.ceil(batch.length / 2); // 3.
    await this.#sendUntilTaken(batch.slice(0, middle));
    await this.#sendUntilTaken(batch.slice(middle));
  }

  #settle(waiting: Waiting, failure?: unknown): void {
    if (waiting.settled) return;
    waiting.settled = true;
    this.#pending -= 1;
    this.#pendingBytes -= waiting.bytes;
    if (waiting.keptElsewhere) this.#keptElsewhere -= 1;
    if (failure === undefined) {
      this.#counts.published += 1;
      waiting.done.resolve();
    } else {
      if (failure instanceof PublishError) this.#counts.quarantined += 1;
      waiting.done.reject(failure);
    }
    if (this.#pending === 0) for (const wake of [...this.#idle]) wake();
  }
}

function bytesOf({ key, value, headers = {} }: OutgoingMessage): number {
  const texts = [key, ...Object.entries(headers).flat()];
  return texts.reduce((sum, text) => sum + text.length, value.length);
}
