import type { ColumnType, Generated, Kysely, Transaction } from "kysely";

interface TopicTable {
  name: string;
  retention_ms: bigint | null;
}

interface PartitionTable {
  id: ColumnType<number, never, never>;
  topic: string;
  /** The partition as consumers see it, counted from 0. */
  number: number;
  first_offset: Generated<bigint>;
  next_offset: Generated<bigint>;
  appended_at: Generated<Date>;
}

interface MessageTable {
  partition_id: number;
  message_offset: bigint;
  appended_at: Date;
  key: Buffer;
  headers: ColumnType<Record<string, string>, string, never>;
  value: Buffer;
}

interface ConsumerGroupTable {
  id: ColumnType<number, never, never>;
  topic: string;
  name: string;
}

interface MemberTable {
  id: string;
  group_id: number;
  expires_at: Date;
}

interface GroupPartitionTable {
  group_id: number;
  partition_id: number;
  next_offset: Generated<bigint>;
  member_id: string | null;
}

/** The tables of the schema `bus`. */
export interface BusTables {
  topic: TopicTable;
  partition: PartitionTable;
  message: MessageTable;
  consumer_group: ConsumerGroupTable;
  member: MemberTable;
  group_partition: GroupPartitionTable;
}

/** The database of the PostgreSQL bus. */
export type BusDatabase = Kysely<BusTables>;

/** A transaction on the database of the PostgreSQL bus. */
export type BusTransaction = Transaction<BusTables>;
