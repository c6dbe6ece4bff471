import type { ColumnType, Generated, Kysely, Selectable, Transaction } from "kysely";
import type { StoredFilterRules } from "./settings/filter-rules.ts";

type CreatedAt = ColumnType<Date, never, never>;
type Instant = ColumnType<Date | null, Date | null | undefined, Date | null>;

interface DestinationTable {
  id: string;
  account_id: string;
  type: string;
  name: string;
  version: Generated<number>;
  privacy_mode: boolean;
  sampling_rate: number;
  /** 64 lower-case hex characters each. */
  key_hashes: string[] | null;
  filter_rules: ColumnType<StoredFilterRules | null, string | null, string | null>;
  /** `tells_*`: what is disclosed besides the generation itself. */
  tells_cost: boolean;
  tells_identity: boolean;
  tells_request_context: boolean;
  /** Null in a deleted one. */
  sealed: Buffer | null;
  created_at: CreatedAt;
  updated_at: ColumnType<Date, never, Date>;
  deleted_at: Instant;
  purged_at: Instant;
}

interface DeliveryQueueTable {
  destination_id: string;
  account_id: string;
  enabled: boolean;
  paused_at: Instant;
  operator_paused_at: Instant;
  due_at: Instant;
  lease_id: string | null;
  not_before: ColumnType<Date, never, Date>;
  batch_id: string | null;
  batch_through: bigint | null;
  attempts: Generated<number>;
  failures: Generated<number>;
  failing_since: Instant;
  is_slow: Generated<boolean>;
  last_failure: Generated<string>;
  max_events: number | null;
  logged: Generated<bigint>;
}

interface PendingTable {
  destination_id: string;
  position: ColumnType<bigint, never, never>;
  event_id: string;
  revision: number;
  /** What is disclosed: see redact.ts. */
  tells: number;
  queued_at: CreatedAt;
  event: Buffer;
}

interface KnownEventTable {
  event_id: string;
  revision: number;
  ended_at: Date;
}

/** How a delivery stands, as stored. */
export type DeliveryStatusName = "delivered" | "retrying" | "dead";

interface DeliveryTable {
  destination_id: string;
  sequence: bigint;
  batch_id: string;
  status: DeliveryStatusName;
  attempt: number;
  event_count: number;
  response_status: number;
  latency_ms: number;
  cause: string;
  attempted_at: CreatedAt;
}

/** The tables of the schema `destination`. */
export interface DestinationTables {
  destination: DestinationTable;
  /** The delivery queue of each destination; what waits in it stands in `pending`. */
  lane: DeliveryQueueTable;
  pending: PendingTable;
  known_event: KnownEventTable;
  delivery: DeliveryTable;
}

/** The destination service's database. */
export type DestinationDatabase = Kysely<DestinationTables>;

/** A transaction of the destination service's database. */
export type DestinationTransaction = Transaction<DestinationTables>;

/** What an owner says of a destination, as stored. */
export type DestinationRow = Omit<Selectable<DestinationTable>, "deleted_at" | "purged_at">;

/** A destination as it is shown: with how its delivery goes. */
export type ShownDestinationRow = DestinationRow &
  Pick<Selectable<DeliveryQueueTable>, "enabled" | "paused_at" | "operator_paused_at" | "last_failure">;

/** An attempt as stored. */
export type DeliveryRow = Selectable<DeliveryTable>;
