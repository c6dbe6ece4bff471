import type { Kysely, Transaction } from "kysely";
import type { Amounts, RecordedAmounts } from "./amounts.ts";

/** Which cell a record is counted in, its day aside. */
export interface CellOwner {
  readonly account_id: string;
  readonly endpoint_id: string;
  /** 64 hex characters; stored as bytes. */
  readonly key_hash: string;
  /** `noMember` where there is none. */
  readonly member_id: string;
  readonly naming_id: string;
}

/** A record without its event. */
export interface RecordRow extends CellOwner, Amounts {
  readonly event_id: string;
  readonly revision: number;
  readonly ended_at: Date;
  /** The UTC day of `ended_at`, `YYYY-MM-DD`; not stored. */
  readonly day: string;
  /** When the hour of `ended_at` begins, RFC 3339; not stored. */
  readonly hour: string;
}

interface RecordTable extends Omit<CellOwner, "key_hash">, RecordedAmounts {
  readonly event_id: string;
  readonly revision: number;
  readonly ended_at: Date;
  readonly key_hash: Buffer;
  readonly event: Buffer;
}

interface CellTable extends Omit<CellOwner, "key_hash">, Amounts {
  readonly key_hash: Buffer;
  readonly requests: bigint;
  readonly last_ended_at: Date | null;
}

interface ActivityTable extends CellTable {
  /** UTC, `YYYY-MM-DD`. */
  readonly day: string;
}

interface ActivityHourTable extends CellTable {
  /** When it begins. */
  readonly hour: Date;
}

/** The names under which an endpoint was used. */
export interface NamingRow {
  readonly id: string;
  readonly model: string;
  readonly permaslug: string;
  readonly provider_name: string;
}

/** What a record is listed by. */
export interface ListingRow {
  readonly event_id: string;
  readonly revision: number;
  readonly account_id: string;
  readonly ended_at: Date;
  readonly model: string;
  /** The slug. */
  readonly provider: string;
  /** 64 hex characters; stored as bytes. */
  readonly key_hash: string;
  readonly member_id: string | null;
  readonly session_id: string | null;
  /** The number of media.event.v1.Outcome. */
  readonly outcome: number;
  readonly first_byte_ms: number | null;
}

interface ListingTable extends Omit<ListingRow, "key_hash"> {
  readonly key_hash: Buffer;
}

interface CatchUpTable {
  /** UTC, `YYYY-MM-DD`. */
  readonly day: string;
}

interface RetentionTable {
  readonly id: number;
  /** UTC, `YYYY-MM-DD`. */
  kept_from: string;
  /** UTC, `YYYY-MM-DD`. */
  hours_kept_from: string;
}

/** The tables of the schema `usage`. */
export interface UsageTables {
  record: RecordTable;
  activity: ActivityTable;
  activity_hour: ActivityHourTable;
  naming: NamingRow;
  listing: ListingTable;
  catch_up: CatchUpTable;
  retention: RetentionTable;
}

/** The usage service's database. */
export type UsageDatabase = Kysely<UsageTables>;

/** A transaction of the usage service's database. */
export type UsageTransaction = Transaction<UsageTables>;

/** The member of what no member did. */
export const noMember = "00000000-0000-0000-0000-000000000000";
