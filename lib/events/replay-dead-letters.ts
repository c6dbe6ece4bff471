/**
 * Puts quarantined messages back onto their topic, once what kept a group from applying them is repaired.
 *
 * 1. A group of its own keeps how far a group's letters were replayed: a second replay begins where the first ended.
 * 2. A letter is passed once its message is durable on its topic again; every group of that topic reads it there.
 * 3. A message that is quarantined again while the replay runs is left for the next one: the replay ends.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { withLimit } from "../runtime/with-limit.ts";
import { type Bus, type BusConsumer, type BusMessage, PublishError } from "./bus.ts";
import { fromDeadLetterMessage, type ReadDeadLetter, replayHeader } from "./dead-letter.ts";
import { sendAll } from "./send-all.ts";
import { deadLetterTopicOf } from "./topics.ts";

/** What to replay. */
export interface ReplayOptions {
  readonly bus: Pick<Bus, "consume" | "send">;
  /** The topic that the messages stood on. */
  readonly topic: string;
  /** The group that could not apply them. */
  readonly group: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** How long nothing must come before the replay counts as done, milliseconds; 3 s unless given. */
  readonly quietMs?: number;
  /** Ends the replay; what is not put back by then is left for the next one. */
  readonly signal: AbortSignal;
}

/** What a replay did, in messages. */
export interface ReplayResult {
  /** Put back onto their topic. */
  readonly replayed: number;
  /** Cut when they were quarantined, or no letters at all: left out for good. */
  readonly unusable: number;
  /** Whether some were quarantined again meanwhile and wait for the next replay. */
  readonly quarantinedAgain: boolean;
}

const defaultQuietMs = 3000;
const lookMs = 50;

/**
 * Puts what one group quarantined back onto its topic and resolves when no more is there. Letters of other groups stay
 * for replays of theirs. Rejects with PublishError when a message is not taken back, and with the signal's reason.
 */
export async function replayDeadLetters(options: ReplayOptions): Promise<ReplayResult> {
  options.signal.throwIfAborted();
  const replay = new Replay(options);
  try {
    await replay.run();
  } finally {
    await replay.leave();
  }
  return replay.result;
}

class Replay {
  readonly #options: ReplayOptions;
  readonly #clock: Clock;
  readonly #id = randomUUID();
  readonly #consumer: BusConsumer;
  readonly #left = new AbortController();
  readonly #parked = new Set<number>();
  readonly #failed = Promise.withResolvers<never>();
  #handledAtMs: number;
  #replayed = 0;
  #unusable = 0;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#handledAtMs = this.#clock.monotonicMs();
    this.#failed.promise.catch(() => undefined);
    this.#consumer = options.bus.consume({
      topic: deadLetterTopicOf(options.topic),
      group: `${options.group}.replay`, // 1.
      // Places are moved batch by batch, and a replay may have to stop at any message.
      maxBatchMessages: 1,
      handle: (batch, signal) => this.#handle(batch, signal),
    });
  }

  get result(): ReplayResult {
    return {
      replayed: this.#replayed,
      unusable: this.#unusable,
      quarantinedAgain: this.#parked.size > 0,
    };
  }

  /** Resolves when everything is put back or parked. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    while (!this.#isDone()) {
      await withLimit(Promise.race([delay(lookMs), this.#failed.promise]), { signal });
    }
  }

  leave(): Promise<void> {
    this.#left.abort();
    return this.#consumer.leave();
  }

  #isDone(): boolean {
    const { connected, lag } = this.#consumer;
    if (!connected || lag === undefined) return false;
    const quietMs = this.#clock.monotonicMs() - this.#handledAtMs;
    if (quietMs < (this.#options.quietMs ?? defaultQuietMs)) return false;
    // What stands behind a parked message can't be distinguished from what is still to come.
    return lag === 0 || this.#parked.size > 0;
  }

  async #handle(batch: readonly BusMessage[], signal: AbortSignal): Promise<void> {
    for (const message of batch) {
      const letter = fromDeadLetterMessage(message);
      if (letter?.replay === this.#id && letter.group === this.#options.group) {
        await this.#park(message.partition, signal); // 3.
      }
      this.#handledAtMs = this.#clock.monotonicMs();
      if (letter === undefined) this.#unusable += 1;
      else if (letter.group === this.#options.group) await this.#putBack(letter, signal);
    }
  }

  /** Holds a partition where it is until the replay ends; always rejects. */
  async #park(partition: number, signal: AbortSignal): Promise<never> {
    this.#parked.add(partition);
    const forEver = new Promise<never>(() => undefined);
    return withLimit(forEver, { signal: AbortSignal.any([signal, this.#left.signal]) });
  }

  async #putBack({ message, topic, eventId }: ReadDeadLetter, signal: AbortSignal): Promise<void> {
    const { bus, log, group } = this.#options;
    if (message === undefined || topic !== this.#options.topic) {
      this.#unusable += 1;
      log.warn({ group, generation_id: eventId }, "quarantined message can't be replayed");
      return;
    }
    const again = { ...message, headers: { ...message.headers, [replayHeader]: this.#id } };
    const [failure] = await sendAll({ bus, topic, log }, [again], signal); // 2.
    if (failure instanceof PublishError) this.#failed.reject(failure);
    if (failure !== undefined) throw failure;
    this.#replayed += 1;
    log.info({ group, generation_id: eventId }, "quarantined message replayed");
  }
}
