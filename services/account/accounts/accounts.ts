import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { unknownRecord } from "../keys/keys.ts";
import type {
  AccountDatabase,
  AccountKindName,
  AccountRow,
  AccountTransaction,
  MemberRow,
} from "../store.ts";

/** Those who left included: with the longest names they fit one answer of 1 MiB. */
const maxMembersPerAccount = 800;

/** Makes an account. */
export function createAccount(
  transaction: AccountTransaction,
  account: { kind: AccountKindName; name: string },
): Promise<AccountRow> {
  return transaction.insertInto("account").values(account).returningAll().executeTakeFirstOrThrow();
}

/** One account. Throws `record_unknown`. */
export async function getAccount(database: AccountDatabase, accountId: string): Promise<AccountRow> {
  const account = await database
    .selectFrom("account")
    .selectAll()
    .where("id", "=", accountId)
    .executeTakeFirst();
  if (account === undefined) throw unknownRecord();
  return account;
}

/** What of an account is to change; what is undefined stays. */
export interface AccountChange {
  readonly name: string | undefined;
  readonly disabled: boolean | undefined;
}

/** Changes an account and says which of that it was not before. Throws `record_unknown`. */
export async function updateAccount(
  transaction: AccountTransaction,
  accountId: string,
  { name, disabled }: AccountChange,
): Promise<{ row: AccountRow; renamed: boolean; switched: boolean }> {
  const accounts = transaction.selectFrom("account").selectAll().where("id", "=", accountId);
  const before = await accounts.forNoKeyUpdate().executeTakeFirst();
  if (before === undefined) throw unknownRecord();
  const renamed = name !== undefined && name !== before.name;
  const switched = disabled !== undefined && disabled !== (before.disabled_at !== null);
  if (!renamed && !switched) return { row: before, renamed, switched };
  const row = await transaction
    .updateTable("account")
    .set({
      ...(renamed ? { name } : {}),
      ...(switched ? { disabled_at: disabled ? sql<Date>`now()` : null } : {}),
    })
    .where("id", "=", accountId)
    .returningAll()
    .executeTakeFirstOrThrow();
  return { row, renamed, switched };
}

/** Accounts, oldest first, that come after the one named `afterId`. */
export function listAccounts(
  database: AccountDatabase,
  afterId: string | undefined,
  limit: number,
): Promise<AccountRow[]> {
  let accounts = database.selectFrom("account").selectAll();
  if (afterId !== undefined) {
    accounts = accounts.where(
      sql<boolean>`(created_at, id) > (SELECT created_at, id FROM account WHERE id = ${afterId})`,
    );
  }
  return accounts.orderBy("created_at").orderBy("id").limit(limit).execute();
}

/** Adds a member to an organization. Throws `record_unknown`, `invalid_body`, `count_limit_reached`. */
export async function addMember(
  transaction: AccountTransaction,
  accountId: string,
  name: string,
): Promise<MemberRow> {
  await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`account.member ${accountId}`}, 0))`.execute(
    transaction,
  );
  const { kind, count } = await describeAccount(transaction, accountId);
  if (kind !== "organization") {
    throw DomainError.invalid([{ path: "account_id", message: "is a personal account" }]);
  }
  if (count >= maxMembersPerAccount) {
    const message = `an organization has at most ${maxMembersPerAccount} members`;
    throw new DomainError(ErrorReason.COUNT_LIMIT_REACHED, message);
  }
  return transaction
    .insertInto("member")
    .values({ account_id: accountId, name })
    .returningAll()
    .executeTakeFirstOrThrow();
}

async function describeAccount(database: AccountDatabase, accountId: string) {
  const account = await database
    .selectFrom("account")
    .select("kind")
    .select((row) =>
      row
        .selectFrom("member")
        .select((member) => member.fn.countAll().as("count"))
        .whereRef("member.account_id", "=", "account.id")
        .as("count"),
    )
    .where("id", "=", accountId)
    .executeTakeFirst();
  if (account === undefined) throw unknownRecord();
  return { kind: account.kind, count: Number(account.count) };
}

/** An organization's members, those who left included, oldest first. Throws `record_unknown`. */
export async function listMembers(database: AccountDatabase, accountId: string): Promise<MemberRow[]> {
  await describeAccount(database, accountId);
  return database
    .selectFrom("member")
    .selectAll()
    .where("account_id", "=", accountId)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/**
 * Removes a member and disables their keys; `changed` is false when they had left before. Throws `record_unknown`.
 * Locks the member, then the keys, like everything that lets a member's key work.
 */
export async function removeMember(
  transaction: AccountTransaction,
  accountId: string,
  memberId: string,
): Promise<{ row: MemberRow; changed: boolean }> {
  const member = await transaction
    .selectFrom("member")
    .selectAll()
    .where("id", "=", memberId)
    .where("account_id", "=", accountId)
    .forUpdate()
    .executeTakeFirst();
  if (member === undefined) throw unknownRecord();
  if (member.removed_at !== null) return { row: member, changed: false };
  const row = await transaction
    .updateTable("member")
    .set({ removed_at: sql<Date>`now()` })
    .where("id", "=", memberId)
    .returningAll()
    .executeTakeFirstOrThrow();
  await transaction
    .updateTable("api_key")
    .set({ disabled: true, updated_at: sql<Date>`now()` })
    .where("member_id", "=", memberId)
    .where("deleted_at", "is", null)
    .where("disabled", "=", false)
    .execute();
  return { row, changed: true };
}
