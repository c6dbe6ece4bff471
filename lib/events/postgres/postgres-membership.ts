/**
 * Who reads which partition of a group, kept in the tables.
 *
 * 1. All that changes a group's members or what they hold happens under the lock of the group's row.
 * 2. A member lives until its lease runs out, by the database's clock; then whoever looks next removes it and what it
 *    held is free. Only the holder of a partition moves the group's place in it.
 * 3. Each member may hold its share of the partitions: it takes what is free up to that, never what another one holds,
 *    and is told to let go of what is above it.
 */
import { type ExpressionBuilder, sql } from "kysely";
import type { BusDatabase, BusTables, BusTransaction } from "./postgres-bus-tables.ts";

/** A member of a group. */
export interface MemberName {
  readonly topic: string;
  readonly group: string;
  /** A UUID. */
  readonly memberId: string;
}

/** A partition that a member holds. */
export interface HeldPartition {
  readonly partitionId: number;
  /** The partition as consumers know it. */
  readonly number: number;
  /** The first message that the group has not finished with. */
  readonly position: bigint;
  /** The earliest message kept. */
  readonly firstOffset: bigint;
  /** What the next message gets. */
  readonly nextOffset: bigint;
}

/** What a member does with its share. */
export interface ShareWish {
  readonly leaseMs: number;
  /** Partitions that it has let go of. */
  readonly released: readonly number[];
  /** Partitions that it must not take, since it still ends what it did there. */
  readonly busy: readonly number[];
  /** Whether it takes more partitions. */
  readonly takesMore: boolean;
}

/** A member's part of its group. */
export interface Share {
  readonly groupId: number;
  readonly held: readonly HeldPartition[];
  /** Partitions of `held` to let go of as soon as they can be. */
  readonly surplus: readonly number[];
  /** Whether another member may now take something. */
  readonly changed: boolean;
}

/** A paused process must not hold up a group for long, nor a group a member. */
const transactionPauseMs = 2000;
const groupLockMs = 2000;

/** Renews a member's lease, or makes it a member, and settles its share; undefined while there is no such topic. */
export function renewMember(
  database: BusDatabase,
  member: MemberName,
  wish: ShareWish,
): Promise<Share | undefined> {
  return database.transaction().execute(async (transaction) => {
    const groupId = await lockGroup(transaction, member);
    if (groupId === undefined) return undefined;
    const joined = await renewLease(transaction, groupId, member.memberId, wish.leaseMs);
    const removed = await removeExpired(transaction, groupId);
    await freePartitions(transaction, groupId, member.memberId, wish.released);
    const partitions = await readPartitions(transaction, groupId);
    const quota = await shareOf(transaction, groupId, member.memberId, partitions.length);
    const own = partitions.filter(({ memberId }) => memberId === member.memberId);
    const free = partitions.filter(
      ({ memberId, partitionId }) => memberId === null && !wish.busy.includes(partitionId),
    );
    const taken = wish.takesMore ? free.slice(0, Math.max(0, quota - own.length)) : [];
    await takePartitions(transaction, groupId, member.memberId, taken);
    return {
      groupId,
      held: [...own, ...taken],
      surplus: own.slice(quota).map(({ partitionId }) => partitionId),
      changed: joined || removed || wish.released.length > 0,
    };
  });
}

/** Takes a member out of its group and frees what it holds. Returns the group's id; undefined when there is none. */
export function removeMember(database: BusDatabase, member: MemberName): Promise<number | undefined> {
  return database.transaction().execute(async (transaction) => {
    const groupId = await lockGroup(transaction, member);
    if (groupId === undefined) return undefined;
    await transaction
      .updateTable("group_partition")
      .set({ member_id: null })
      .where("group_id", "=", groupId)
      .where("member_id", "=", member.memberId)
      .execute();
    await transaction.deleteFrom("member").where("id", "=", member.memberId).execute();
    return groupId;
  });
}

/**
 * Moves a group's place in a partition to just behind what was handled; false when the member does not hold the
 * partition any more.
 */
export async function commitPosition(
  database: BusDatabase,
  groupId: number,
  partitionId: number,
  memberId: string,
  position: bigint,
): Promise<boolean> {
  const { numUpdatedRows } = await database
    .updateTable("group_partition")
    .set({ next_offset: position })
    .where("group_id", "=", groupId)
    .where("partition_id", "=", partitionId)
    .where("member_id", "=", memberId)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

/**
 * Locks a group, making it and its place in each partition of the topic first; undefined when there is no such topic.
 * The transaction becomes one that does not wait for the disk: membership need not survive a crash.
 */
export async function lockGroup(
  transaction: BusTransaction,
  { topic, group }: Omit<MemberName, "memberId">,
): Promise<number | undefined> {
  await sql`SELECT set_config('synchronous_commit', 'off', true),
    set_config('idle_in_transaction_session_timeout', ${String(transactionPauseMs)}, true),
    set_config('lock_timeout', ${String(groupLockMs)}, true)`.execute(transaction);
  const find = () =>
    transaction
      .selectFrom("consumer_group")
      .select("id")
      .where("topic", "=", topic)
      .where("name", "=", group)
      .forUpdate()
      .executeTakeFirst();
  const found = (await find()) ?? (await makeGroup(transaction, topic, group).then(find));
  if (found !== undefined) await addPlaces(transaction, found.id, topic);
  return found?.id;
}

async function makeGroup(transaction: BusTransaction, topic: string, group: string): Promise<void> {
  await transaction
    .insertInto("consumer_group")
    .columns(["topic", "name"])
    .expression(
      transaction
        .selectFrom("topic")
        .select((select) => ["topic.name", select.val(group).as("group_name")])
        .where("name", "=", topic),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** New partitions begin at their earliest message. */
async function addPlaces(transaction: BusTransaction, groupId: number, topic: string): Promise<void> {
  await transaction
    .insertInto("group_partition")
    .columns(["group_id", "partition_id"])
    .expression(
      transaction
        .selectFrom("partition")
        .select((select) => [select.val(groupId).as("group_id"), "id"])
        .where("topic", "=", topic)
        .where(({ not, exists, selectFrom }) =>
          not(
            exists(
              selectFrom("group_partition as place")
                .select("place.partition_id")
                .where("place.group_id", "=", groupId)
                .whereRef("place.partition_id", "=", "partition.id"),
            ),
          ),
        ),
    )
    .execute();
}

async function renewLease(
  transaction: BusTransaction,
  groupId: number,
  memberId: string,
  leaseMs: number,
): Promise<boolean> {
  const { rows } = await sql<{ joined: boolean }>`
    INSERT INTO member (id, group_id, expires_at)
    VALUES (${memberId}, ${groupId}, clock_timestamp() + ${leaseMs} * interval '1 ms')
    ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
    RETURNING xmax = 0 AS joined`.execute(transaction);
  return rows[0]?.joined === true;
}

/** Whether there was anything to free. */
async function removeExpired(transaction: BusTransaction, groupId: number): Promise<boolean> {
  await transaction
    .deleteFrom("member")
    .where("group_id", "=", groupId)
    .where("expires_at", "<", sql<Date>`clock_timestamp()`)
    .execute();
  const { numUpdatedRows } = await transaction
    .updateTable("group_partition")
    .set({ member_id: null })
    .where("group_id", "=", groupId)
    .where("member_id", "is not", null)
    .where((where) => where("member_id", "not in", livingMembers(where, groupId)))
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

function livingMembers(where: ExpressionBuilder<BusTables, "group_partition">, groupId: number) {
  return where.selectFrom("member").select("member.id").where("member.group_id", "=", groupId);
}

async function freePartitions(
  transaction: BusTransaction,
  groupId: number,
  memberId: string,
  partitionIds: readonly number[],
): Promise<void> {
  if (partitionIds.length === 0) return;
  await transaction
    .updateTable("group_partition")
    .set({ member_id: null })
    .where("group_id", "=", groupId)
    .where("member_id", "=", memberId)
    .where("partition_id", "in", partitionIds)
    .execute();
}

function readPartitions(transaction: BusTransaction, groupId: number) {
  return transaction
    .selectFrom("group_partition as place")
    .innerJoin("partition", "partition.id", "place.partition_id")
    .where("place.group_id", "=", groupId)
    .orderBy("partition.number")
    .select([
      "place.partition_id as partitionId",
      "partition.number",
      "place.next_offset as position",
      "partition.first_offset as firstOffset",
      "partition.next_offset as nextOffset",
      "place.member_id as memberId",
    ])
    .execute();
}

/** How many partitions a member may hold: all shares together are all partitions, and differ by one at most. */
async function shareOf(
  transaction: BusTransaction,
  groupId: number,
  memberId: string,
  partitions: number,
): Promise<number> {
  const members = await transaction
    .selectFrom("member")
    .select("id")
    .where("group_id", "=", groupId)
    .orderBy("id")
    .execute();
  const rank = members.findIndex(({ id }) => id === memberId);
  return Math.floor(partitions / members.length) + (rank < partitions % members.length ? 1 : 0);
}

async function takePartitions(
  transaction: BusTransaction,
  groupId: number,
  memberId: string,
  partitions: readonly HeldPartition[],
): Promise<void> {
  if (partitions.length === 0) return;
  await transaction
    .updateTable("group_partition")
    .set({ member_id: memberId })
    .where("group_id", "=", groupId)
    .where(
      "partition_id",
      "in",
      partitions.map(({ partitionId }) => partitionId),
    )
    .execute();
}
