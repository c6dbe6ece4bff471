import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { AccountTransaction, ApiKeyRow } from "../store.ts";

interface LockedKey extends ApiKeyRow {
  readonly member_is_active: boolean;
  readonly is_expired: boolean;
}

interface Ending {
  readonly disabled: boolean | undefined;
  readonly expiresAt: Date | null | undefined;
}

/**
 * Lets those who end keys of an account decide one after the other, until the transaction ends. Taken before every
 * other lock.
 */
export async function lockKeyEndings(transaction: AccountTransaction, accountId: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`account.key_end ${accountId}`}, 0))`.execute(
    transaction,
  );
}

/** Whether a change lets a key end earlier than it would. */
export function endsEarlier(key: ApiKeyRow, { disabled, expiresAt }: Ending): boolean {
  if (disabled === true) return true;
  return expiresAt != null && (key.expires_at === null || expiresAt < key.expires_at);
}

/**
 * Lets a key end only if its account keeps a management key: one that works now and for as long as this one would.
 * Throws `last_management_key`.
 */
export async function checkNotLast(transaction: AccountTransaction, key: LockedKey): Promise<void> {
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
