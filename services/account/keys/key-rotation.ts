import { sql } from "kysely";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import type { AccountTransaction } from "../store.ts";
import { type CreatedKey, insertKey, type LockedKey, lockKey } from "./keys.ts";

/** Which key is to be replaced, and how long it still works, in seconds. */
export interface KeyRotation {
  readonly hash: string;
  readonly graceS: number;
}

/**
 * Makes a successor of a key: the same but for the key itself, in the same line of rotations. The old one expires when
 * the grace period ends, or earlier by its own expiry. Throws `record_unknown`, `invalid_body` for a key that was
 * replaced, is disabled or has expired, and `count_limit_reached`.
 */
export async function rotateKey(
  transaction: AccountTransaction,
  accountId: string,
  { hash, graceS }: KeyRotation,
): Promise<CreatedKey> {
  const old = await lockKey(transaction, accountId, hash);
  const message = rotationFault(old);
  if (message !== undefined) throw DomainError.invalid([{ path: "hash", message }]);
  const { name, kind, scopes, expires_at, member_id, rate_bucket: rateBucket } = old;
  const { limit_nano_usd, limit_reset, include_byok_in_limit, rate_limit_per_minute } = old;
  const limits = { limit_nano_usd, limit_reset, include_byok_in_limit, rate_limit_per_minute };
  const successor = { name, kind, scopes, expires_at, member_id, ...limits };
  const created = await insertKey(transaction, accountId, successor, { rateBucket });
  await transaction
    .updateTable("api_key")
    .set({
      replaced_by: created.row.hash,
      expires_at: sql<Date>`least(expires_at, now() + make_interval(secs => ${graceS}))`,
      updated_at: sql<Date>`now()`,
    })
    .where("hash", "=", hash)
    .execute();
  return created;
}

function rotationFault(key: LockedKey): string | undefined {
  if (key.replaced_by !== null) return "the key was replaced before";
  if (key.disabled || !key.member_is_active) return "the key is disabled";
  return key.is_expired ? "the key has expired" : undefined;
}
