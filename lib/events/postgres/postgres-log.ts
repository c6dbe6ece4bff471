/**
 * The log of a topic.
 *
 * Messages get their numbers under the lock of their topic's row, which is held until the commit: a reader that sees a
 * number has seen all before it. Whoever listens is notified with the commit.
 */
import { sql } from "kysely";
import { type BusMessage, type OutgoingMessage, PublishError } from "../bus.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import type { GroupIds } from "./postgres-groups.ts";

/** What is notified: a topic's id and how far its log reaches, with a colon between. */
export const busChannel = "media_gateway_bus";

/** Most bytes of a message: its key, its value and its headers. */
const maxMessageBytes = 1024 * 1024;
const maxFetchBytes = 4 * 1024 * 1024;

interface FetchOptions {
  readonly topic: string;
  readonly ids: GroupIds;
  readonly position: bigint;
  readonly maxMessages: number;
}

/** How far the log of a topic reaches. */
export interface LogEnd {
  readonly topicId: number;
  /** What the next message gets. */
  readonly nextOffset: bigint;
}

/** Appends messages, all or none. Throws PublishError where there is no such topic. */
export async function appendMessages(
  database: BusDatabase,
  topic: string,
  messages: readonly OutgoingMessage[],
): Promise<LogEnd> {
  const rows = messages.map(toRow);
  const { rows: ends } = await sql<LogEnd>`
    WITH numbered AS (
      UPDATE topic SET next_offset = next_offset + ${rows.length},
        appended_at = greatest(appended_at, clock_timestamp())
      WHERE name = ${topic} RETURNING id, next_offset, appended_at
    ), inserted AS (
      INSERT INTO log (topic_id, message_offset, appended_at, key, headers, value)
      SELECT id, next_offset - ${rows.length} + place - 1, appended_at, key, headers::json, value
      FROM numbered, unnest(${rows.map(({ key }) => key)}::bytea[], ${rows.map(({ value }) => value)}::bytea[],
        ${rows.map(({ headers }) => headers)}::text[]) WITH ORDINALITY AS given (key, value, headers, place)
    )
    SELECT id AS "topicId", next_offset AS "nextOffset", pg_notify(${busChannel}, id || ':' || next_offset)
    FROM numbered`.execute(database);
  const [end] = ends;
  if (end === undefined) throw new PublishError(`there is no topic ${topic}`);
  return end;
}

interface Fetched {
  /** Without what the group had finished with when partitions were merged. */
  readonly messages: readonly BusMessage[];
  /** The last message of the part; undefined when there is none. */
  readonly through: bigint | undefined;
}

/** The next messages, in their order, bounded in number and bytes. */
export async function fetchMessages(
  database: BusDatabase,
  { topic, ids, position, maxMessages }: FetchOptions,
): Promise<Fetched> {
  const { rows } = await sql<{
    offset: bigint;
    appended_at: Date;
    key: Buffer;
    headers: Record<string, string>;
    value: Buffer;
    finished: boolean | null;
  }>`
    SELECT message_offset AS offset, appended_at, key, headers, value, ${ids.groupId} = ANY (finished_by) AS finished
    FROM (
      SELECT *, sum(octet_length(value)) OVER (ORDER BY message_offset) - octet_length(value) AS bytes_before
      FROM (
        SELECT * FROM log WHERE topic_id = ${ids.topicId} AND message_offset >= ${position}
        ORDER BY message_offset LIMIT ${maxMessages}
      ) AS page
    ) AS sized
    WHERE bytes_before < ${maxFetchBytes}
    ORDER BY message_offset`.execute(database);
  const messages = rows.map(({ offset, appended_at, key, headers, value }) => ({
    topic,
    partition: 0,
    offset,
    appendedAtMs: appended_at.getTime(),
    key: key.toString(),
    headers,
    value,
  }));
  return {
    messages: messages.filter((_, index) => rows[index]?.finished !== true),
    through: messages.at(-1)?.offset,
  };
}

function toRow({ key, value, headers = {} }: OutgoingMessage) {
  const row = { key: Buffer.from(key), value, headers: JSON.stringify(headers) };
  const bytes = row.key.length + value.length + Buffer.byteLength(row.headers);
  if (bytes <= maxMessageBytes) return row;
  throw new PublishError(`a message has ${bytes} bytes, at most ${maxMessageBytes} are taken`);
}
