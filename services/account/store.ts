import type { ColumnType, Generated, Kysely, Selectable, Transaction } from "kysely";

/** Kinds of account, as stored. */
export type AccountKindName = "personal" | "organization";

/** Kinds of key, as stored. */
export type KeyKindName = "inference" | "management";

/** Scopes of keys, as stored. */
export type KeyScopeName = "speech" | "images";

/** Periods of a key's credit limit, as stored; null is the key's whole life. */
export type LimitResetName = "daily" | "weekly" | "monthly";

type CreatedAt = ColumnType<Date, never, never>;
type Instant = ColumnType<Date | null, Date | null | undefined, Date | null>;

interface AccountTable {
  id: Generated<string>;
  kind: AccountKindName;
  name: string;
  created_at: CreatedAt;
}

interface MemberTable {
  id: Generated<string>;
  account_id: string;
  name: string;
  created_at: CreatedAt;
  removed_at: Instant;
}

interface ApiKeyTable {
  /** SHA-256 of the key in hex. A deleted key keeps its row, so that it can never be made again. */
  hash: string;
  account_id: string;
  member_id: string | null;
  kind: KeyKindName;
  scopes: KeyScopeName[];
  name: string;
  label: string;
  disabled: Generated<boolean>;
  created_at: CreatedAt;
  updated_at: Instant;
  expires_at: Instant;
  deleted_at: Instant;
  limit_nano_usd: ColumnType<bigint | null, bigint | null | undefined, bigint | null>;
  limit_reset: LimitResetName | null;
  include_byok_in_limit: Generated<boolean>;
  rate_limit_per_minute: number | null;
  /** Hash of the first key of its line of rotations. */
  rate_bucket: string;
}

interface AuditTable {
  id: ColumnType<bigint, never, never>;
  at: CreatedAt;
  operator: string;
  action: string;
  account_id: string | null;
  subject: string;
}

/** The tables of the schema `account`. */
export interface AccountTables {
  account: AccountTable;
  member: MemberTable;
  api_key: ApiKeyTable;
  audit: AuditTable;
}

/** The account service's database. */
export type AccountDatabase = Kysely<AccountTables>;

/** A transaction of the account service's database. */
export type AccountTransaction = Transaction<AccountTables>;

/** An account as stored. */
export type AccountRow = Selectable<AccountTable>;

/** A member as stored. */
export type MemberRow = Selectable<MemberTable>;

/** A key as stored. */
export type ApiKeyRow = Selectable<ApiKeyTable>;

/** An audit entry as stored. */
export type AuditRow = Selectable<AuditTable>;
