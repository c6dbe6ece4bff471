/**
 * Reads for a group while it holds its lock.
 *
 * 1. One batch at a time: fetched behind the group's place, handled, and only then the place is moved.
 * 2. A batch whose handling fails is fetched again, after a pause that grows, and nothing behind it before.
 * 3. Who lost the connection may have lost the lock: the batch's signal fires. The place is only moved from where it was
 *    found, so a reader that does not know yet takes nothing from its successor.
 * 4. What comes within a moment of the last batch is read together; what comes after a quiet time is read at once.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../runtime/log.ts";
import { withLimit } from "../../runtime/with-limit.ts";
import { type BusMessage, type ConsumeOptions, gatherMs } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import { type GroupIds, movePlace, type PlaceRow, placeQuery } from "./postgres-groups.ts";
import { fetchMessages } from "./postgres-log.ts";
import type { ReaderLock } from "./postgres-session.ts";

/** What is read, and from where. */
export interface ReadingOptions {
  readonly database: BusDatabase;
  readonly log: Log;
  readonly consume: ConsumeOptions;
  /** How often is looked for messages of which no word came. */
  readonly lookMs: number;
}

interface PostgresReaderOptions extends ReadingOptions {
  readonly ids: GroupIds;
  readonly lock: ReaderLock;
  /** Ends the reading behind the running batch. */
  readonly leaving: AbortSignal;
}

/** Longer than the database lets a statement run. */
const queryTimeoutMs = 20_000;
const firstPauseMs = 100;
const longestPauseMs = 5000;

/** The one that reads for a group. */
export class PostgresReader {
  readonly #options: PostgresReaderOptions;
  readonly #end: AbortSignal;
  readonly #pause = new RetryPause(firstPauseMs, longestPauseMs);
  /** The group's place in the database, as far as this reader knows. */
  #stored = 0n;
  /** The first message that is not handled. */
  #position = 0n;
  /** The earliest message kept. */
  #first = 0n;
  /** What the next message gets. */
  #next = 0n;
  #isReading = false;
  #foundNothing = false;
  #wake: () => void = () => undefined;

  constructor(options: PostgresReaderOptions) {
    this.#options = options;
    this.#end = AbortSignal.any([options.leaving, options.lock.ended]);
    this.#end.addEventListener("abort", () => this.#wake(), { once: true });
  }

  get lag(): number | undefined {
    return this.#isReading && !this.#end.aborted ? this.#waiting : undefined;
  }

  reaches(nextOffset: bigint): void {
    if (nextOffset <= this.#next) return;
    this.#next = nextOffset;
    this.#wake();
  }

  /** Resolves when it is to leave, or the group may have another reader. Rejects when the group can't be read. */
  async run(): Promise<void> {
    this.#stored = this.#position = await this.#look();
    this.#goOn();
    this.#isReading = true;
    let isOurs = true;
    while (isOurs && !this.#end.aborted) {
      if (this.#waiting > 0) isOurs = await this.#step();
      else if (!(await this.#sleep())) await this.#lookOn();
    }
  }

  get #waiting(): number {
    return Number(this.#next - this.#position);
  }

  /** False when somebody else has moved the place. */
  async #step(): Promise<boolean> {
    const { database, log, consume, ids } = this.#options;
    const { topic, group, maxBatchMessages } = consume;
    try {
      const { messages, through } = await withLimit(
        fetchMessages(database, { topic, ids, position: this.#position, maxMessages: maxBatchMessages }),
        { timeoutMs: queryTimeoutMs, signal: this.#end },
      );
      if (through === undefined) await this.#lookAgain();
      else {
        await this.#handle(messages);
        if (!(await this.#move(through + 1n))) return false; // 1.
        if (messages.length < maxBatchMessages)
          await delay(gatherMs, undefined, { signal: this.#end }).catch(() => undefined); // 4.
      }
      this.#pause.reset();
    } catch (thrown) {
      if (!this.#pause.failing && !this.#end.aborted)
        log.warn({ err: thrown, topic, group }, "messages come again");
      await this.#pause.wait(this.#end); // 2.
    }
    return true;
  }

  async #handle(messages: readonly BusMessage[]): Promise<void> {
    this.#foundNothing = false;
    if (messages.length > 0) await this.#options.consume.handle(messages, this.#end); // 3.
  }

  /** Tries until the place is moved or can't be, since somebody else moved it or nobody can wait for it any longer. */
  async #move(to: bigint): Promise<boolean> {
    const { database, log, ids, lock, leaving } = this.#options;
    const pause = new RetryPause(firstPauseMs, longestPauseMs);
    for (;;) {
      try {
        const work = movePlace(database, ids.groupId, this.#stored, to); // 3.
        const isMoved = await withLimit(work, { timeoutMs: queryTimeoutMs });
        if (isMoved) this.#stored = this.#position = to;
        return isMoved;
      } catch (thrown) {
        if (leaving.aborted && lock.ended.aborted) return false;
        if (!pause.failing) log.warn({ err: thrown }, "a group's place can't be stored yet");
        // Whatever the signal says: an end waits for this.
        await pause.wait();
      }
    }
  }

  /** Learns how far the log reaches and what is deleted; gives the group's place. */
  async #look(): Promise<bigint> {
    const known = this.#next;
    const [row] = await this.#options.lock.query<PlaceRow>(placeQuery(this.#options.ids));
    if (row === undefined) throw new Error("the group is gone");
    const next = BigInt(row.next);
    // A word that came meanwhile may be newer.
    if (this.#next === known || next > this.#next) this.#next = next;
    this.#first = BigInt(row.first);
    return BigInt(row.position);
  }

  async #lookOn(): Promise<void> {
    await this.#look();
    this.#goOn();
  }

  /** Nothing came though something should be there: it is deleted, or was never true. */
  async #lookAgain(): Promise<void> {
    await this.#lookOn();
    // Once is no fault: something may have been appended since.
    if (this.#foundNothing && this.#waiting > 0) throw new Error("messages are missing from the log");
    this.#foundNothing = this.#waiting > 0;
  }

  /** Goes on at the earliest message that is left. Only a new group has missed nothing then. */
  #goOn(): void {
    const messages = Number(this.#first - this.#position);
    if (messages <= 0) return;
    const { log, consume } = this.#options;
    const fields = { topic: consume.topic, group: consume.group, messages };
    if (this.#position > 0n) log.error(fields, "messages were deleted before the group had read them");
    this.#position = this.#first;
  }

  /** True when woken, false when it is time to look. */
  #sleep(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#options.lookMs, false);
      this.#wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}
