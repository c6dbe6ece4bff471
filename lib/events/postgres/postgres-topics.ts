import { sql } from "kysely";
import type { SeekOptions, TopicSettings, TopicState } from "../bus.ts";
import type { BusDatabase, BusTransaction } from "./postgres-bus-tables.ts";
import { lockGroup } from "./postgres-membership.ts";

/** Makes a topic, or more partitions of it, and tells what else differs. Throws on settings that no topic can have. */
export async function ensureTopic(database: BusDatabase, settings: TopicSettings): Promise<TopicState> {
  const { name, partitions, retentionMs } = settings;
  if (!Number.isInteger(partitions) || partitions < 1) throw new Error(`${name} needs a partition or more`);
  return database.transaction().execute(async (transaction) => {
    const kept = Number.isFinite(retentionMs) ? BigInt(retentionMs) : null;
    const inserted = await transaction
      .insertInto("topic")
      .values({ name, retention_ms: kept })
      .onConflict((conflict) => conflict.doNothing())
      .returning("name")
      .executeTakeFirst();
    // Two that add partitions wait for each other here.
    const topic = await transaction
      .selectFrom("topic")
      .select("retention_ms")
      .where("name", "=", name)
      .forUpdate()
      .executeTakeFirstOrThrow();
    const { count } = await transaction
      .selectFrom("partition")
      .select((select) => select.fn.countAll<bigint>().as("count"))
      .where("topic", "=", name)
      .executeTakeFirstOrThrow();
    const missing = Array.from({ length: Math.max(0, partitions - Number(count)) }, (_, index) => ({
      topic: name,
      number: Number(count) + index,
    }));
    if (missing.length > 0) await transaction.insertInto("partition").values(missing).execute();
    const differences: string[] = [];
    if (count > partitions) differences.push(`it has ${count} partitions, not ${partitions}`);
    if (topic.retention_ms !== kept) {
      differences.push(`it keeps messages ${inWords(topic.retention_ms)}, not ${inWords(kept)}`);
    }
    return { name, created: inserted !== undefined, differences };
  });
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

/** Moves a group's places to the first messages appended at or after an instant. Throws when it has members. */
export function seekGroup(database: BusDatabase, { topic, group, timestampMs }: SeekOptions): Promise<void> {
  return database.transaction().execute(async (transaction) => {
    const groupId = await lockGroup(transaction, { topic, group });
    if (groupId === undefined) throw new Error(`there is no topic ${topic}`);
    await sql`SELECT set_config('synchronous_commit', 'on', true)`.execute(transaction);
    const member = await transaction
      .selectFrom("member")
      .select("id")
      .where("group_id", "=", groupId)
      .where("expires_at", ">=", sql<Date>`clock_timestamp()`)
      .executeTakeFirst();
    if (member !== undefined) throw new Error(`the group ${group} has members; stop them first`);
    const partitions = await transaction
      .selectFrom("partition")
      .select(["id", "first_offset", "next_offset"])
      .where("topic", "=", topic)
      .execute();
    for (const { id, first_offset, next_offset } of partitions) {
      const position = await firstOffsetSince(transaction, id, first_offset, next_offset, timestampMs);
      await transaction
        .updateTable("group_partition")
        .set({ next_offset: position, member_id: null })
        .where("group_id", "=", groupId)
        .where("partition_id", "=", id)
        .execute();
    }
  });
}

/** Halves the range again and again: instants never go back within a partition, so no index on them is needed. */
async function firstOffsetSince(
  transaction: BusTransaction,
  partitionId: number,
  from: bigint,
  end: bigint,
  timestampMs: number,
): Promise<bigint> {
  let [low, high] = [from, end];
  while (low < high) {
    const middle = (low + high) / 2n;
    const row = await transaction
      .selectFrom("message")
      .select(["message_offset", "appended_at"])
      .where("partition_id", "=", partitionId)
      .where("message_offset", ">=", middle)
      .orderBy("message_offset")
      .limit(1)
      .executeTakeFirst();
    if (row === undefined || row.appended_at.getTime() >= timestampMs) high = middle;
    else low = row.message_offset + 1n;
  }
  return low;
}
