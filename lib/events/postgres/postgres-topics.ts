import { sql } from "kysely";
import type { SeekOptions, TopicSettings, TopicState } from "../bus.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import { ensureGroup, readerLockClass } from "./postgres-groups.ts";

/** Makes a topic and reports what differs of one that is there. Throws on settings that no topic can have. */
export async function ensureTopic(database: BusDatabase, settings: TopicSettings): Promise<TopicState> {
  const { name, retentionMs } = settings;
  const kept = Number.isFinite(retentionMs) ? BigInt(retentionMs) : null;
  const inserted = await database
    .insertInto("topic")
    .values({ name, retention_ms: kept })
    .onConflict((conflict) => conflict.doNothing())
    .returning("name")
    .executeTakeFirst();
  const found = await database
    .selectFrom("topic")
    .select("retention_ms")
    .where("name", "=", name)
    .executeTakeFirstOrThrow();
  const differences =
    found.retention_ms === kept
      ? []
      : [`it keeps messages ${inWords(found.retention_ms)}, not ${inWords(kept)}`];
  return { name, created: inserted !== undefined, differences };
}

function inWords(retentionMs: bigint | null): string {
  return retentionMs === null ? "for ever" : `${retentionMs} ms`;
}

/** How long a topic keeps messages, milliseconds; Infinity for ever. Throws when there is no such topic. */
export async function topicRetentionMs(database: BusDatabase, topic: string): Promise<number> {
  const row = await database
    .selectFrom("topic")
    .select("retention_ms")
    .where("name", "=", topic)
    .executeTakeFirst();
  if (row === undefined) throw new Error(`there is no topic ${topic}`);
  return row.retention_ms === null ? Number.POSITIVE_INFINITY : Number(row.retention_ms);
}

/** Moves a group's place to the first message appended at or after an instant. Throws when it has a reader. */
export async function seekGroup(
  database: BusDatabase,
  { topic, group, timestampMs }: SeekOptions,
): Promise<void> {
  const { groupId, topicId } = await ensureGroup(database, topic, group);
  await database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ free: boolean }>`
      SELECT pg_try_advisory_xact_lock(${readerLockClass}, ${groupId}) AS free`.execute(transaction);
    if (rows[0]?.free !== true) throw new Error(`the group ${group} has members; stop them first`);
    await sql`
      UPDATE consumer_group SET next_offset = coalesce(
        (SELECT message_offset FROM log WHERE topic_id = ${topicId} AND appended_at >= ${new Date(timestampMs)}
          ORDER BY message_offset LIMIT 1),
        (SELECT next_offset FROM topic WHERE id = ${topicId}))
      WHERE id = ${groupId}`.execute(transaction);
    // Who is moved back wants everything behind its new place.
    await sql`UPDATE log SET finished_by = array_remove(finished_by, ${groupId})
      WHERE topic_id = ${topicId} AND finished_by IS NOT NULL`.execute(transaction);
  });
}
