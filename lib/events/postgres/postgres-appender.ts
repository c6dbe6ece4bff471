/**
 * Appends messages to the log tables.
 *
 * 1. Messages get their numbers under the lock of their partition's row, which is held until the commit: a reader that
 *    sees a number has seen all before it. Rows are locked in the order of their numbers, so appends never deadlock.
 * 2. One append of a topic at a time; sends that come meanwhile go together in the next one, in their order.
 * 3. An append that fails is tried again, with those of its sends whose signal has not fired.
 */
import { hash } from "node:crypto";
import { sql } from "kysely";
import type { Log } from "../../runtime/log.ts";
import { type OutgoingMessage, PublishError } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { withLimit } from "../with-limit.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import type { PartitionEnd, PostgresWakeups } from "./postgres-wakeups.ts";

/** Most bytes of a message: its key, its value and its headers. */
export const maxMessageBytes = 1024 * 1024;

/** Longer than the database lets a statement run: what was given up is not under way any more. */
const appendTimeoutMs = 20_000;
const maxAppendMessages = 1000;
const maxAppendBytes = 4 * 1024 * 1024;
const firstPauseMs = 50;
const longestPauseMs = 1000;

interface Row {
  readonly hash: number;
  readonly key: Buffer;
  readonly value: Uint8Array;
  readonly headers: string;
  readonly bytes: number;
}

interface Send {
  readonly rows: readonly Row[];
  readonly bytes: number;
  /** Whether it has been answered, one way or the other. */
  settled: boolean;
  resolve(): void;
  reject(thrown: unknown): void;
}

/** The sending half of the PostgreSQL bus. */
export class PostgresAppender {
  readonly #database: BusDatabase;
  readonly #wakeups: Pick<PostgresWakeups, "tellAppended">;
  readonly #log: Log;
  readonly #lanes = new Map<string, { waiting: Send[]; readonly running: Promise<void> }>();
  readonly #closing = new AbortController();

  constructor(options: {
    database: BusDatabase;
    wakeups: Pick<PostgresWakeups, "tellAppended">;
    log: Log;
  }) {
    this.#database = options.database;
    this.#wakeups = options.wakeups;
    this.#log = options.log;
  }

  /** As the bus's `send`. */
  async send(topic: string, messages: readonly OutgoingMessage[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#closing.signal.aborted) throw closedError();
    if (messages.length === 0) return;
    const rows = messages.map(toRow);
    await new Promise<void>((resolve, reject) => {
      const settle = (answer: () => void) => {
        if (send.settled) return;
        send.settled = true;
        signal.removeEventListener("abort", onAbort);
        answer();
      };
      const send: Send = {
        rows,
        bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
        settled: false,
        resolve: () => settle(resolve),
        reject: (thrown) => settle(() => reject(thrown)),
      };
      const onAbort = () => send.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#enqueue(topic, send);
    });
  }

  /** Lets the appends under way end and gives up the rest. */
  async close(): Promise<void> {
    this.#closing.abort();
    for (const { waiting } of this.#lanes.values()) {
      for (const send of waiting.splice(0)) send.reject(closedError());
    }
    await Promise.all([...this.#lanes.values()].map(({ running }) => running));
  }

  #enqueue(topic: string, send: Send): void {
    const lane = this.#lanes.get(topic);
    if (lane !== undefined) {
      lane.waiting.push(send);
      return;
    }
    const waiting = [send];
    const running = this.#run(topic, waiting);
    this.#lanes.set(topic, { waiting, running });
  }

  async #run(topic: string, waiting: Send[]): Promise<void> {
    while (waiting.length > 0) await this.#append(topic, waiting.splice(0, batchLength(waiting)));
    this.#lanes.delete(topic);
  }

  async #append(topic: string, sends: readonly Send[]): Promise<void> {
    const pause = new RetryPause(firstPauseMs, longestPauseMs);
    for (;;) {
      const wanted = sends.filter(({ settled }) => !settled);
      if (wanted.length === 0) return;
      try {
        const rows = wanted.flatMap((send) => send.rows);
        const ends = await withLimit(insertMessages(this.#database, topic, rows), {
          timeoutMs: appendTimeoutMs,
        });
        if (ends.length === 0) {
          for (const send of wanted) send.reject(new PublishError(`there is no topic ${topic}`));
        }
        for (const send of wanted) send.resolve();
        this.#wakeups.tellAppended(ends);
      } catch (thrown) {
        if (!pause.failing) this.#log.warn({ err: thrown, topic }, "messages can't be appended yet");
        await pause.wait(this.#closing.signal);
        if (this.#closing.signal.aborted) for (const send of wanted) send.reject(closedError());
      }
    }
  }
}

function closedError(): Error {
  return new Error("the bus was closed");
}

function toRow({ key, value, headers = {} }: OutgoingMessage): Row {
  const keyBytes = Buffer.from(key);
  const headerText = JSON.stringify(headers);
  const bytes = keyBytes.length + value.length + Buffer.byteLength(headerText);
  if (bytes > maxMessageBytes) {
    throw new PublishError(`a message has ${bytes} bytes, at most ${maxMessageBytes} are taken`);
  }
  return { hash: stableHash(key), key: keyBytes, value, headers: headerText, bytes };
}

/** The same number for the same key, in every process and release. */
function stableHash(key: string): number {
  return Number.parseInt(hash("sha256", key).slice(0, 8), 16);
}

function batchLength(waiting: readonly Send[]): number {
  let bytes = 0;
  let messages = 0;
  const index = waiting.findIndex((send, position) => {
    bytes += send.bytes;
    messages += send.rows.length;
    return position > 0 && (bytes > maxAppendBytes || messages > maxAppendMessages);
  });
  return index < 0 ? waiting.length : index;
}

/** Returns where the touched partitions end now; nothing when there is no such topic. */
async function insertMessages(
  database: BusDatabase,
  topic: string,
  rows: readonly Row[],
): Promise<PartitionEnd[]> {
  const { rows: ends } = await sql<PartitionEnd>`
    WITH input AS (
      SELECT hash % partitions AS number, key, value, headers, place
      FROM unnest(${rows.map((row) => row.hash)}::int8[], ${rows.map(({ key }) => key)}::bytea[],
        ${rows.map(({ value }) => value)}::bytea[], ${rows.map(({ headers }) => headers)}::text[])
        WITH ORDINALITY AS given (hash, key, value, headers, place),
        (SELECT count(*) AS partitions FROM partition WHERE topic = ${topic}) AS counted
      WHERE partitions > 0
    ), wanted AS (
      SELECT number, count(*) AS messages FROM input GROUP BY number
    ), locked AS (
      SELECT id, number, messages FROM partition JOIN wanted USING (number)
      WHERE topic = ${topic} ORDER BY number FOR NO KEY UPDATE OF partition
    ), numbered AS (
      UPDATE partition SET next_offset = next_offset + messages,
        appended_at = greatest(appended_at, clock_timestamp())
      FROM locked WHERE partition.id = locked.id
      RETURNING partition.id, partition.number, next_offset, next_offset - messages AS first, appended_at
    ), inserted AS (
      INSERT INTO message (partition_id, message_offset, appended_at, key, headers, value)
      SELECT id, first + row_number() OVER (PARTITION BY id ORDER BY place) - 1, appended_at,
        key, headers::json, value
      FROM input JOIN numbered USING (number)
    )
    SELECT id AS "partitionId", next_offset AS "nextOffset" FROM numbered`.execute(database);
  return ends;
}
