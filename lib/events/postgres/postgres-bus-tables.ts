import type { ColumnType, Generated, Kysely } from "kysely";

interface TopicTable {
  id: ColumnType<number, never, never>;
  name: string;
  retention_ms: bigint | null;
  first_offset: Generated<bigint>;
  next_offset: Generated<bigint>;
  appended_at: Generated<Date>;
}

interface LogTable {
  topic_id: number;
  message_offset: bigint;
  appended_at: Date;
  key: Buffer;
  headers: ColumnType<Record<string, string>, string, never>;
  value: Buffer;
  finished_by: number[] | null;
}

interface ConsumerGroupTable {
  id: ColumnType<number, never, never>;
  topic: string;
  name: string;
  next_offset: Generated<bigint>;
}

/** The tables of the schema `bus`. */
export interface BusTables {
  topic: TopicTable;
  log: LogTable;
  consumer_group: ConsumerGroupTable;
}

/** The database of the PostgreSQL bus. */
export type BusDatabase = Kysely<BusTables>;
