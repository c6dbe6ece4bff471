import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { generateApiKey, hashApiKey, maskApiKey } from "../../../lib/identity/api-key.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { AccountDatabase, AccountTransaction, ApiKeyRow } from "../store.ts";
import { checkKeyOwner, lockActiveMember } from "./key-members.ts";

/*
 * Owns the API keys of accounts.
 * 1. A key is stored as its hash and a mask; the key itself is returned once by what makes it.
 * 2. A deleted key keeps its row: its hash is never accepted or made again.
 * 3. Whatever would let a member's key work locks the member first, then the key, as removing the member does; so no
 *    key of a member who has left works.
 * 4. Whatever decides by what a key is like locks it first; so a key is replaced once, and one that was replaced never
 *    works longer than its grace period.
 * 5. What ends a key first takes its account's lock for that, so that of the last two management keys one stays.
 */

/** Most keys that an account may have, disabled and expired ones included. */
export const maxKeysPerAccount = 1000;

/** Whether a key has expired, as a column of a query of keys. */
export const isExpired = sql<boolean>`coalesce(api_key.expires_at <= now(), false)`;

type Limits = "limit_nano_usd" | "limit_reset" | "include_byok_in_limit" | "rate_limit_per_minute";

/** What a new key is to be. */
export type NewKey = Pick<ApiKeyRow, "name" | "kind" | "scopes" | "expires_at" | "member_id" | Limits> &
  Partial<Pick<ApiKeyRow, "is_for_console">>;

/** What of a key is to change: undefined stays as it is, null is taken away. */
export type KeyChange = {
  readonly [C in "name" | "disabled" | "expires_at" | Limits]: ApiKeyRow[C] | undefined;
};

/** Which of an account's keys are asked for, newest first. */
export interface KeyPage {
  readonly offset: number;
  readonly limit: number;
  readonly includeDisabled: boolean;
}

/** A key just made, with the key itself. */
export interface CreatedKey {
  readonly secret: string;
  readonly row: ApiKeyRow;
}

/**
 * Makes a key in an account, `secret` being the key itself when it was chosen beforehand. Throws `record_unknown`
 * without the account, `invalid_body` for a member that can't have it and `count_limit_reached`.
 */
export async function createKey(
  transaction: AccountTransaction,
  accountId: string,
  key: NewKey,
  memberPath = "member_id",
  secret = generateApiKey(),
): Promise<CreatedKey> {
  const account = await transaction
    .selectFrom("account")
    .select("kind")
    .where("id", "=", accountId)
    .executeTakeFirst();
  if (account === undefined) throw unknownRecord();
  const owner = { accountKind: account.kind, accountId, memberId: key.member_id };
  await checkKeyOwner(transaction, owner, memberPath);
  return insertKey(transaction, accountId, key, { secret });
}

/**
 * Stores a key that was checked; without a `rateBucket` it begins a line of rotations of its own. Throws
 * `count_limit_reached`.
 */
export async function insertKey(
  transaction: AccountTransaction,
  accountId: string,
  key: NewKey,
  { secret = generateApiKey(), rateBucket }: { readonly secret?: string; readonly rateBucket?: string } = {},
): Promise<CreatedKey> {
  await checkCount(transaction, accountId);
  const hash = hashApiKey(secret); // 1.
  const row = await transaction
    .insertInto("api_key")
    .values({
      ...key,
      hash,
      account_id: accountId,
      label: maskApiKey(secret),
      rate_bucket: rateBucket ?? hash,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  return { secret, row };
}

async function checkCount(transaction: AccountTransaction, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`account.key ${accountId}`}, 0))`.execute(
    transaction,
  );
  const { count } = await transaction
    .selectFrom("api_key")
    .select((row) => row.fn.countAll().as("count"))
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null)
    .executeTakeFirstOrThrow();
  if (Number(count) >= maxKeysPerAccount) {
    throw new DomainError(
      ErrorReason.COUNT_LIMIT_REACHED,
      `an account has at most ${maxKeysPerAccount} keys`,
    );
  }
}

/** A page of an account's keys, newest first, and how many there are in all. */
export async function listKeys(
  database: AccountDatabase,
  accountId: string,
  { offset, limit, includeDisabled }: KeyPage,
): Promise<{ rows: ApiKeyRow[]; totalCount: bigint }> {
  let keys = database
    .selectFrom("api_key")
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null);
  if (!includeDisabled) keys = keys.where("disabled", "=", false);
  const [rows, total] = await Promise.all([
    keys.selectAll().orderBy("created_at", "desc").orderBy("hash").offset(offset).limit(limit).execute(),
    keys.select((row) => row.fn.countAll().as("count")).executeTakeFirstOrThrow(),
  ]);
  return { rows, totalCount: BigInt(total.count) };
}

/** One key of an account. Throws `record_unknown`. */
export async function getKey(database: AccountDatabase, accountId: string, hash: string): Promise<ApiKeyRow> {
  const row = await database
    .selectFrom("api_key")
    .selectAll()
    .where("hash", "=", hash)
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (row === undefined) throw unknownRecord();
  return row;
}

/**
 * Changes a key. Throws `record_unknown`, `invalid_body` for what this key can't have, and `last_management_key` unless
 * it may be that.
 */
export async function updateKey(
  transaction: AccountTransaction,
  accountId: string,
  hash: string,
  change: KeyChange,
  { mayEndLast = false } = {},
): Promise<ApiKeyRow> {
  await lockKeyEndings(transaction, accountId);
  const key = await lockKey(transaction, accountId, hash); // 4.
  checkChange(key, change);
  if (!mayEndLast && endsEarlier(key, change)) await checkNotLast(transaction, key); // 5.
  if (Object.values(change).every((value) => value === undefined)) return key;
  return transaction
    .updateTable("api_key")
    .set({ ...change, updated_at: sql<Date>`now()` })
    .where("hash", "=", hash)
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** A key that stays as it is until the transaction ends. */
export interface LockedKey extends ApiKeyRow {
  /** Whether its member still belongs to the organization; true for keys of no member. */
  readonly member_is_active: boolean;
  readonly is_expired: boolean;
}

/** Locks a key of an account, after its member. Throws `record_unknown`. */
export async function lockKey(
  transaction: AccountTransaction,
  accountId: string,
  hash: string,
): Promise<LockedKey> {
  const { member_id } = await getKey(transaction, accountId, hash);
  const member_is_active = member_id === null || (await lockActiveMember(transaction, accountId, member_id)); // 3.
  const row = await transaction
    .selectFrom("api_key")
    .selectAll()
    .select(isExpired.as("is_expired"))
    .where("hash", "=", hash)
    .where("deleted_at", "is", null)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (row === undefined) throw unknownRecord();
  return { ...row, member_is_active };
}

function checkChange(key: LockedKey, change: KeyChange): void {
  const issues: { path: string; message: string }[] = [];
  if (key.kind === "management") {
    const message = "is for inference keys only";
    if (change.limit_nano_usd != null) issues.push({ path: "limit_nano_usd", message });
    if (change.rate_limit_per_minute != null) issues.push({ path: "rate_limit_per_minute", message });
  }
  if (change.disabled === false && !key.member_is_active) {
    issues.push({ path: "disabled", message: "the key's member has left the organization" });
  }
  const { expires_at: expiresAt } = change;
  const isLater =
    expiresAt === null || (expiresAt !== undefined && expiresAt > (key.expires_at ?? expiresAt));
  if (key.replaced_by !== null && isLater) {
    // 4.
    issues.push({ path: "expires_at", message: "the key was replaced and can't work longer" });
  }
  if (issues.length > 0) throw DomainError.invalid(issues);
}

/**
 * Deletes a key. Throws `record_unknown`, also for one deleted before, and `last_management_key`.
 */
export function deleteKey(database: AccountDatabase, accountId: string, hash: string): Promise<void> {
  return database.transaction().execute(async (transaction) => {
    await lockKeyEndings(transaction, accountId);
    await checkNotLast(transaction, await lockKey(transaction, accountId, hash)); // 5.
    await transaction
      .updateTable("api_key")
      .set({ deleted_at: sql<Date>`now()` }) // 2.
      .where("hash", "=", hash)
      .execute();
  });
}

/** The error for a record that does not exist for the caller. */
export function unknownRecord(): DomainError {
  return new DomainError(ErrorReason.RECORD_UNKNOWN, "no such record");
}

/**
 * Lets those who end keys of an account decide one after the other, until the transaction ends. Taken before every
 * other lock.
 */
async function lockKeyEndings(transaction: AccountTransaction, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`account.key_end ${accountId}`}, 0))`.execute(
    transaction,
  );
}

/** Whether a change lets a key end earlier than it would. */
function endsEarlier(key: ApiKeyRow, { disabled, expires_at: expiresAt }: KeyChange): boolean {
  if (disabled === true) return true;
  return expiresAt != null && (key.expires_at === null || expiresAt < key.expires_at);
}

/**
 * Lets a key end only if its account keeps a management key: one that works now and for as long as this one would.
 * Throws `last_management_key`.
 */
async function checkNotLast(transaction: AccountTransaction, key: LockedKey): Promise<void> {
  const works = !key.disabled && !key.is_expired && key.member_is_active;
  if (key.kind !== "management" || !works) return;
  const other = await transaction
    .selectFrom("api_key")
    .leftJoin("member", "member.id", "api_key.member_id")
    .select("hash")
    .where("api_key.account_id", "=", key.account_id)
    .where("kind", "=", "management")
    .where("hash", "!=", key.hash)
    .where("deleted_at", "is", null)
    .where("disabled", "=", false)
    .where("member.removed_at", "is", null)
    .where(({ eb, or }) =>
      or([
        eb("expires_at", "is", null),
        ...(key.expires_at === null ? [] : [eb("expires_at", ">=", key.expires_at)]),
      ]),
    )
    .executeTakeFirst();
  if (other !== undefined) return;
  throw new DomainError(
    ErrorReason.LAST_MANAGEMENT_KEY,
    "it is the account's last management key that works: make or rotate to another one first",
  );
}
