import { sql } from "kysely";
import type { BusDatabase } from "./postgres-bus-tables.ts";

/** First key of the advisory locks of those who read; the second is the group's id. */
export const readerLockClass = 0x6d67_6275;

/** Ids of a group and its topic. */
export interface GroupIds {
  readonly groupId: number;
  readonly topicId: number;
}

/** Makes a group, which is new then and begins at the earliest message. Throws where there is no such topic. */
export async function ensureGroup(database: BusDatabase, topic: string, group: string): Promise<GroupIds> {
  await sql`INSERT INTO consumer_group (topic, name) SELECT name, ${group} FROM topic WHERE name = ${topic}
    ON CONFLICT DO NOTHING`.execute(database);
  const ids = await database
    .selectFrom("consumer_group")
    .innerJoin("topic", "topic.name", "consumer_group.topic")
    .where("topic.name", "=", topic)
    .where("consumer_group.name", "=", group)
    .select(["consumer_group.id as groupId", "topic.id as topicId"])
    .executeTakeFirst();
  if (ids === undefined) throw new Error(`there is no topic ${topic}`);
  return ids;
}

/**
 * Moves a group's place to just behind what was handled; false when somebody else has moved it since it was read. A
 * repeated move, whose first answer got lost, is none of somebody else.
 */
export async function movePlace(
  database: BusDatabase,
  groupId: number,
  from: bigint,
  to: bigint,
): Promise<boolean> {
  const { numUpdatedRows } = await database
    .updateTable("consumer_group")
    .set({ next_offset: to })
    .where("id", "=", groupId)
    .where("next_offset", "in", [from, to])
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/** A group's place, and how far its topic's log reaches; offsets as texts. */
export interface PlaceRow {
  /** The first message that the group has not finished with. */
  readonly position: string;
  /** The earliest message kept. */
  readonly first: string;
  /** What the next message gets. */
  readonly next: string;
}

/** Reads a group's place. */
export function placeQuery({ groupId }: GroupIds): { text: string; values: readonly unknown[] } {
  const text = `SELECT place.next_offset AS position, topic.first_offset AS first, topic.next_offset AS next
    FROM bus.consumer_group AS place JOIN bus.topic AS topic ON topic.name = place.topic WHERE place.id = $1`;
  return { text, values: [groupId] };
}
