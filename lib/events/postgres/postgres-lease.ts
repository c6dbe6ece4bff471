import { sql } from "kysely";
import type { BusDatabase } from "./postgres-bus-tables.ts";
import type { HeldPartition, MemberName, Share } from "./postgres-membership.ts";

interface PlaceRow extends Omit<HeldPartition, "position"> {
  /** Null where the group has no place yet. */
  readonly position: bigint | null;
  readonly memberId: string | null;
  /** Whether the lease was renewed: 1 or 0. */
  readonly renewed: number;
  readonly members: number;
  /** Of these, whose ids come before the member's. */
  readonly before: number;
  readonly expired: number;
}

/**
 * Renews the lease of a member of a group in which nothing is to be changed, in one statement, and tells what it holds;
 * undefined when there may be something to change, or the member is none any more: see `renewMember`. The group's lock
 * is not needed: a lease is renewed only if it has not run out, and only a member itself takes or lets go of anything
 * while its lease runs.
 */
export async function keepShare(
  database: BusDatabase,
  { topic, memberId }: MemberName,
  groupId: number,
  leaseMs: number,
): Promise<Share | undefined> {
  const { rows } = await sql<PlaceRow>`
    WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
    renewed AS (
      UPDATE member SET expires_at = clock_timestamp() + ${leaseMs} * interval '1 ms' FROM unsynced
      WHERE id = ${memberId} AND group_id = ${groupId} AND expires_at >= clock_timestamp()
      RETURNING id
    ), members AS (
      SELECT count(*)::integer AS members, (count(*) FILTER (WHERE id < ${memberId}))::integer AS before,
        (count(*) FILTER (WHERE expires_at < clock_timestamp()))::integer AS expired
      FROM member WHERE group_id = ${groupId}
    )
    SELECT id AS "partitionId", number, place.next_offset AS position, first_offset AS "firstOffset",
      partition.next_offset AS "nextOffset", place.member_id AS "memberId",
      (SELECT count(*)::integer FROM renewed) AS renewed, members, before, expired
    FROM members, partition
    LEFT JOIN group_partition AS place ON place.partition_id = partition.id AND place.group_id = ${groupId}
    WHERE topic = ${topic} ORDER BY number`.execute(database);
  const [first] = rows;
  if (first === undefined || first.renewed === 0 || first.expired > 0) return undefined;
  if (rows.some((row) => row.memberId === null)) return undefined;
  const held = rows.flatMap(({ partitionId, number, position, firstOffset, nextOffset, ...row }) => {
    if (row.memberId !== memberId || position === null) return [];
    return [{ partitionId, number, position, firstOffset, nextOffset }];
  });
  if (held.length > shareOf(rows.length, first)) return undefined;
  return { groupId, held, surplus: [], changed: false };
}

/** See `renewMember`. */
function shareOf(partitions: number, { members, before }: PlaceRow): number {
  return Math.floor(partitions / members) + (before < partitions % members ? 1 : 0);
}
