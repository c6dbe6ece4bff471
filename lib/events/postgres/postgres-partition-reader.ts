/**
 * Reads one partition for one member of a group.
 *
 * 1. One batch at a time: fetched behind the group's place, handled, and only then the place is moved.
 * 2. A batch whose handling fails is fetched again, after a pause that grows, and nothing behind it before.
 * 3. What comes within a moment of the last batch is read together; what comes after a quiet time is read at once.
 * 4. A place is moved only while the member holds the partition; one that has lost it ends at the next batch's end.
 */
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import type { Log } from "../../runtime/log.ts";
import type { BusMessage, ConsumeOptions } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { withLimit } from "../with-limit.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import { commitPosition, type HeldPartition } from "./postgres-membership.ts";

/** Whose partition is read. */
export interface PartitionReaderOptions {
  readonly database: BusDatabase;
  readonly log: Log;
  readonly consume: ConsumeOptions;
  readonly groupId: number;
  readonly memberId: string;
  readonly partition: HeldPartition;
  /** Called when it has ended. */
  onEnd(): void;
}

/** Longer than the database lets a statement run. */
const queryTimeoutMs = 20_000;
const maxFetchBytes = 4 * 1024 * 1024;
/** After a batch that was not full, what comes meanwhile is read together: a transaction for each would cost far more. */
const gatherMs = 100;
const firstPauseMs = 100;
const longestPauseMs = 5000;

/** A partition that is being read until told to end. */
export class PartitionReader {
  readonly #options: PartitionReaderOptions;
  readonly #ending = new AbortController();
  readonly #pause = new RetryPause(firstPauseMs, longestPauseMs);
  readonly #ended: Promise<void>;
  #batch = new AbortController();
  #wake = Promise.withResolvers<void>();
  #position: bigint;
  #firstOffset: bigint;
  #nextOffset: bigint;
  #lapsed = false;
  #foundNothing = false;
  #running = true;

  constructor(options: PartitionReaderOptions) {
    const { position, firstOffset, nextOffset } = options.partition;
    this.#options = options;
    this.#position = position;
    this.#firstOffset = firstOffset;
    this.#nextOffset = nextOffset;
    this.#ended = this.#run();
  }

  /** How many messages wait behind those handled. */
  get lag(): number {
    if (this.#position < this.#firstOffset) return Number(this.#nextOffset - this.#firstOffset);
    return Number(this.#nextOffset - this.#position);
  }

  /** Whether it may still handle something. */
  get running(): boolean {
    return this.#running;
  }

  /** Learns how far the partition reaches. */
  reaches(nextOffset: bigint, firstOffset: bigint = this.#firstOffset): void {
    if (nextOffset > this.#nextOffset) this.#nextOffset = nextOffset;
    if (firstOffset > this.#firstOffset) this.#firstOffset = firstOffset;
    this.#wake.resolve();
  }

  /** The lease may have run out: another member may already read. */
  lapse(): void {
    this.#lapsed = true;
    this.#batch.abort();
  }

  /** The lease was renewed and the partition is still held. */
  recover(): void {
    this.#lapsed = false;
    this.#wake.resolve();
  }

  /** Ends behind the running batch, whose signal fires if told so. Resolves then. */
  end({ abort }: { abort: boolean }): Promise<void> {
    this.#ending.abort();
    this.#wake.resolve();
    if (abort) this.#batch.abort();
    return this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      this.#passDeleted();
      if (this.#lapsed || this.lag === 0) {
        await this.#wake.promise;
        this.#wake = Promise.withResolvers();
      } else await this.#step();
    }
    this.#running = false;
    this.#options.onEnd();
  }

  async #step(): Promise<void> {
    try {
      const batch = await withLimit(this.#fetch(), { timeoutMs: queryTimeoutMs });
      if (batch.length > 0) {
        await this.#handle(batch);
        if (batch.length < this.#options.consume.maxBatchMessages) await this.#gather();
      } else await withLimit(this.#look(), { timeoutMs: queryTimeoutMs });
      this.#pause.reset();
    } catch (thrown) {
      const { log, consume, partition } = this.#options;
      const fields = { topic: consume.topic, group: consume.group, partition: partition.number };
      if (!this.#pause.failing) log.warn({ err: thrown, ...fields }, "messages come again");
      await this.#pause.wait(this.#ending.signal);
    }
  }

  async #gather(): Promise<void> {
    await delay(gatherMs, undefined, { signal: this.#ending.signal }).catch(() => undefined);
  }

  async #handle(batch: readonly BusMessage[]): Promise<void> {
    const [first, last] = [batch[0], batch.at(-1)];
    if (this.#ending.signal.aborted || this.#lapsed || first === undefined || last === undefined) return;
    this.#foundNothing = false;
    this.reaches(last.offset + 1n, first.offset);
    this.#passDeleted();
    this.#batch = new AbortController();
    await this.#options.consume.handle(batch, this.#batch.signal);
    await this.#commit(last.offset + 1n);
  }

  /** Nothing came though something should be there: it is deleted, or was never true. */
  async #look(): Promise<void> {
    const { database, partition } = this.#options;
    const { first_offset, next_offset } = await database
      .selectFrom("partition")
      .select(["first_offset", "next_offset"])
      .where("id", "=", partition.partitionId)
      .executeTakeFirstOrThrow();
    this.#firstOffset = first_offset;
    this.#nextOffset = next_offset;
    this.#passDeleted();
    // Once is no fault: something may have been appended since.
    if (this.#foundNothing && this.lag > 0) throw new Error("messages are missing from the log");
    this.#foundNothing = this.lag > 0;
  }

  #fetch(): Promise<BusMessage[]> {
    const { database, consume, partition } = this.#options;
    const { topic, maxBatchMessages } = consume;
    return fetchMessages(database, topic, partition, this.#position, maxBatchMessages);
  }

  /** Goes on at the earliest message that is left. Only a new group has missed nothing then. */
  #passDeleted(): void {
    if (this.#position >= this.#firstOffset) return;
    const { log, consume, partition } = this.#options;
    const messages = Number(this.#firstOffset - this.#position);
    const fields = { topic: consume.topic, group: consume.group, partition: partition.number, messages };
    if (this.#position > 0n) log.error(fields, "messages were deleted before the group had read them");
    this.#position = this.#firstOffset;
  }

  /** Tries until the place is moved or can't be, since it is another member's or nobody can wait for it any longer. */
  async #commit(position: bigint): Promise<void> {
    const { database, groupId, memberId, partition, log } = this.#options;
    const pause = new RetryPause(firstPauseMs, longestPauseMs);
    for (;;) {
      try {
        const work = commitPosition(database, groupId, partition.partitionId, memberId, position);
        if (await withLimit(work, { timeoutMs: queryTimeoutMs })) this.#position = position;
        else this.#ending.abort();
        return;
      } catch (thrown) {
        if (this.#ending.signal.aborted && this.#lapsed) return;
        if (!pause.failing) log.warn({ err: thrown }, "a group's place can't be stored yet");
        // Whatever the signal says: an end waits for this.
        await pause.wait();
      }
    }
  }
}

async function fetchMessages(
  database: BusDatabase,
  topic: string,
  { partitionId, number }: HeldPartition,
  position: bigint,
  limit: number,
): Promise<BusMessage[]> {
  const { rows } = await sql<{
    offset: bigint;
    appended_at: Date;
    key: Buffer;
    headers: Record<string, string>;
    value: Buffer;
  }>`
    SELECT message_offset AS offset, appended_at, key, headers, value
    FROM (
      SELECT *, sum(octet_length(value)) OVER (ORDER BY message_offset) - octet_length(value) AS bytes_before
      FROM (
        SELECT * FROM message WHERE partition_id = ${partitionId} AND message_offset >= ${position}
        ORDER BY message_offset LIMIT ${limit}
      ) AS page
    ) AS sized
    WHERE bytes_before < ${maxFetchBytes}
    ORDER BY message_offset`.execute(database);
  return rows.map(({ offset, appended_at, key, headers, value }) => ({
    topic,
    partition: number,
    offset,
    appendedAtMs: appended_at.getTime(),
    key: key.toString(),
    headers,
    value,
  }));
}
