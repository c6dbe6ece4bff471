import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { AccountKindName, AccountTransaction } from "../store.ts";

/** Whom a key is to belong to. */
interface KeyOwner {
  readonly accountKind: AccountKindName;
  readonly accountId: string;
  readonly memberId: string | null;
}

/**
 * Checks that a key of this owner may exist, and keeps the member from being removed until the transaction ends. Throws
 * `invalid_body` with `path`.
 */
export async function checkKeyOwner(
  transaction: AccountTransaction,
  owner: KeyOwner,
  path: string,
): Promise<void> {
  const message = await ownerFault(transaction, owner);
  if (message !== undefined) throw DomainError.invalid([{ path, message }]);
}

async function ownerFault(
  transaction: AccountTransaction,
  { accountKind, accountId, memberId }: KeyOwner,
): Promise<string | undefined> {
  if (accountKind === "personal")
    return memberId === null ? undefined : "must be empty on a personal account";
  if (memberId === null) return "is required for a key of an organization";
  const isActive = await lockActiveMember(transaction, accountId, memberId);
  return isActive ? undefined : "is no member of the organization";
}

/** Keeps the member from being removed until the transaction ends; false when they don't belong to the account. */
export async function lockActiveMember(
  transaction: AccountTransaction,
  accountId: string,
  memberId: string,
): Promise<boolean> {
  const member = await transaction
    .selectFrom("member")
    .select("id")
    .where("id", "=", memberId)
    .where("account_id", "=", accountId)
    .where("removed_at", "is", null)
    .forShare()
    .executeTakeFirst();
  return member !== undefined;
}
