import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import type { Log } from "../../runtime/log.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";

const maxStepMessages = 1000;

/**
 * Deletes messages that are older than their topic keeps them, again and again until the signal fires, in small steps.
 * As on Kafka it does not matter whether a group has read them: a reader that finds them gone says so on its log.
 */
export async function deleteOldMessages(options: {
  readonly database: BusDatabase;
  readonly log: Log;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { database, log, intervalMs, signal } = options;
  while (!signal.aborted) {
    await delay(intervalMs, undefined, { signal }).catch(() => undefined);
    try {
      if (!signal.aborted) await deleteOnce(database, signal);
    } catch (thrown) {
      log.warn({ err: thrown }, "old messages can't be deleted yet");
    }
  }
}

async function deleteOnce(database: BusDatabase, signal: AbortSignal): Promise<void> {
  const topics = await database
    .selectFrom("topic")
    .where("retention_ms", "is not", null)
    .select(["id", "retention_ms"])
    .execute();
  for (const { id, retention_ms } of topics) {
    while (!signal.aborted && (await deleteStep(database, id, retention_ms ?? 0n)) === maxStepMessages);
  }
}

/** Looks at the oldest messages only, and returns how many it deleted. */
async function deleteStep(database: BusDatabase, topicId: number, retentionMs: bigint): Promise<number> {
  const { rows } = await sql<{ messages: number }>`
    WITH oldest AS (
      SELECT message_offset, appended_at FROM log WHERE topic_id = ${topicId}
      ORDER BY message_offset LIMIT ${maxStepMessages}
    ), deleted AS (
      DELETE FROM log USING oldest
      WHERE topic_id = ${topicId} AND log.message_offset = oldest.message_offset
        AND oldest.appended_at < now() - ${retentionMs} * interval '1 ms'
      RETURNING log.message_offset
    ), counted AS (
      SELECT count(*)::integer AS messages, max(message_offset) + 1 AS first_offset FROM deleted
    )
    UPDATE topic SET first_offset = greatest(topic.first_offset, counted.first_offset)
    FROM counted WHERE id = ${topicId} AND messages > 0
    RETURNING messages`.execute(database);
  return rows[0]?.messages ?? 0;
}
