import type { ColumnType, Generated, Kysely, Selectable, Transaction } from "kysely";

/** Kinds of account, as stored. */
export type AccountKindName = "personal" | "organization";

/** Kinds of key, as stored. */
export type KeyKindName = "inference" | "management";

/** Scopes of keys, as stored. */
export type KeyScopeName = "speech" | "images";

/** Periods of a key's credit limit, as stored; null is the key's whole life. */
export type LimitResetName = "daily" | "weekly" | "monthly";

type HoldStateName = "open" | "settled" | "lost" | "released" | "refused";

/** Why a reservation was refused, as stored. */
export type HoldRefusalName = "credits" | "key_limit" | "too_late";

/** The ledger's books: its accounts. */
export type BookName = "granted" | "customer" | "revenue";

type CreatedAt = ColumnType<Date, never, never>;
type Instant = ColumnType<Date | null, Date | null | undefined, Date | null>;

interface AccountTable {
  id: Generated<string>;
  kind: AccountKindName;
  name: string;
  created_at: CreatedAt;
  granted_nano_usd: Generated<bigint>;
  charged_nano_usd: Generated<bigint>;
  held_nano_usd: Generated<bigint>;
  /** Granted less charged; holds are not taken off. */
  balance_nano_usd: ColumnType<bigint, never, never>;
  disabled_at: Instant;
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
  /** Hash of its successor. */
  replaced_by: ColumnType<string | null, never, string>;
  /** To about a minute. */
  last_used_at: ColumnType<Date | null, never, never>;
  /** Whether it was made for a page of the console, which shows it nowhere. */
  is_for_console: Generated<boolean>;
}

/** Codes that serve once; those that have not yet. */
interface ConsoleLinkTable {
  /** SHA-256 of the code in hex. */
  hash: string;
  account_id: string;
  expires_at: Date;
}

interface AuditTable {
  id: ColumnType<bigint, never, never>;
  at: CreatedAt;
  operator: string;
  action: string;
  account_id: string | null;
  subject: string;
  note: Generated<string>;
}

interface ProviderKeyTable {
  id: string;
  account_id: string;
  provider_slug: string;
  name: string;
  label: string;
  /** Null in a deleted key. */
  sealed: Buffer | null;
  disabled: Generated<boolean>;
  created_at: CreatedAt;
  deleted_at: Instant;
}

/** What a line of rotated keys has spent and has on hold, over its whole life. */
interface KeyLineTable {
  rate_bucket: string;
  account_id: string;
  held_nano_usd: Generated<bigint>;
  spent_nano_usd: Generated<bigint>;
  byok_nano_usd: Generated<bigint>;
}

/** The same by UTC day of the reservation, `YYYY-MM-DD`. */
interface KeyLineDayTable {
  rate_bucket: string;
  day: string;
  held_nano_usd: Generated<bigint>;
  spent_nano_usd: Generated<bigint>;
  byok_nano_usd: Generated<bigint>;
}

/** Written by the functions `reserve`, `settle` and `release` of the schema alone; publishing moves its due time. */
interface HoldTable {
  id: string;
  account_id: string;
  state: HoldStateName;
  refusal: HoldRefusalName | null;
  rate_bucket: string | null;
  day: string | null;
  amount_nano_usd: Generated<bigint>;
  key_amount_nano_usd: Generated<bigint>;
  deadline: Instant;
  created_at: CreatedAt;
  closed_at: Instant;
  event: Buffer | null;
  revision: number | null;
  cost_nano_usd: Generated<bigint>;
  debited_nano_usd: Generated<bigint>;
  seen: Generated<boolean>;
  publish_due_at: Instant;
  publish_count: Generated<number>;
}

interface LedgerEntryTable {
  id: ColumnType<bigint, never, never>;
  at: CreatedAt;
  account_id: string;
  debit: BookName;
  credit: BookName;
  amount_nano_usd: bigint;
  generation_id: string | null;
  revision: number | null;
  grant_id: string | null;
}

/** The tables of the schema `account`. */
export interface AccountTables {
  account: AccountTable;
  member: MemberTable;
  api_key: ApiKeyTable;
  audit: AuditTable;
  console_link: ConsoleLinkTable;
  key_line: KeyLineTable;
  key_line_day: KeyLineDayTable;
  hold: HoldTable;
  ledger_entry: LedgerEntryTable;
  provider_key: ProviderKeyTable;
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

/** A provider key as it is shown: without the sealed key itself. */
export type ProviderKeyRow = Omit<Selectable<ProviderKeyTable>, "sealed" | "deleted_at">;
