import { withLimit } from "../../runtime/with-limit.ts";
import type { BusConsumer } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { ensureGroup, type GroupIds } from "./postgres-groups.ts";
import { PostgresReader, type ReadingOptions } from "./postgres-reader.ts";
import type { PostgresSession } from "./postgres-session.ts";

interface PostgresConsumerOptions extends ReadingOptions {
  readonly session: PostgresSession;
}

const ensureTimeoutMs = 20_000;
const firstPauseMs = 20;
const longestPauseMs = 1000;

/** A member of a group: reads while it holds the group's lock, and else waits for it. */
export class PostgresConsumer implements BusConsumer {
  readonly #options: PostgresConsumerOptions;
  readonly #leaving = new AbortController();
  readonly #pause = new RetryPause(firstPauseMs, longestPauseMs);
  readonly #ended: Promise<void>;
  #ids: GroupIds | undefined;
  #reader: PostgresReader | undefined;
  /** Whether another of the group reads. */
  #isWaiting = false;
  #isAway = false;

  constructor(options: PostgresConsumerOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  get connected(): boolean {
    return this.#isWaiting || this.lag !== undefined;
  }

  get lag(): number | undefined {
    return this.#reader?.lag;
  }

  async leave(): Promise<void> {
    this.#leaving.abort();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const stopListening = this.#options.session.listen(({ topicId, nextOffset }) => {
      if (topicId === this.#ids?.topicId) this.#reader?.reaches(nextOffset);
    });
    while (!this.#leaving.signal.aborted) {
      await this.#read().catch((thrown: unknown) => this.#tellAway(thrown));
      await this.#pause.wait(this.#leaving.signal);
    }
    this.#isWaiting = false;
    stopListening();
  }

  /** Reads for as long as it holds the lock; resolves at once where another does. */
  async #read(): Promise<void> {
    const { database, session, consume } = this.#options;
    this.#ids ??= await withLimit(ensureGroup(database, consume.topic, consume.group), {
      timeoutMs: ensureTimeoutMs,
      signal: this.#leaving.signal,
    });
    const lock = await session.lock(this.#ids.groupId, this.#leaving.signal);
    this.#isWaiting = lock === undefined;
    if (this.#isAway)
      this.#options.log.info({ topic: consume.topic, group: consume.group }, "the bus is back");
    this.#isAway = false;
    if (lock === undefined) return;
    this.#pause.reset();
    const leaving = this.#leaving.signal;
    this.#reader = new PostgresReader({ ...this.#options, ids: this.#ids, lock, leaving });
    try {
      await this.#reader.run();
    } finally {
      this.#reader = undefined;
      await lock.release();
    }
  }

  #tellAway(thrown: unknown): void {
    const { log, consume } = this.#options;
    this.#isWaiting = false;
    if (this.#isAway || this.#leaving.signal.aborted) return;
    this.#isAway = true;
    log.warn({ err: thrown, topic: consume.topic, group: consume.group }, "the bus is away");
  }
}
