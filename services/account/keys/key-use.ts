import { sql } from "kysely";
import type { Principal } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { keyRefusal } from "../../../lib/identity/authenticate.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import { toProtoPrincipal } from "../convert.ts";
import type { AccountDatabase } from "../store.ts";
import { isExpired } from "./keys.ts";

/** How exactly a key's last use is known: it is written at most once in that time. */
const useInterval = sql`interval '1 minute'`;

/**
 * Who a key speaks for, by its hash, and notes that it was used. Throws `key_unknown`, `key_disabled` or `key_expired`;
 * a use that can't be noted is logged alone.
 */
export async function findPrincipal(
  database: AccountDatabase,
  keyHash: string,
  log: Log,
): Promise<Principal> {
  const key = await findUsableKey(database, keyHash);
  if (key.use_is_stale) {
    await noteUse(database, keyHash).catch((err: unknown) => {
      log.warn({ err, key_hash: keyHash }, "the use of a key was not noted");
    });
  }
  return toProtoPrincipal(key);
}

async function findUsableKey(database: AccountDatabase, hash: string) {
  const row = await database
    .selectFrom("api_key")
    .innerJoin("account", "account.id", "api_key.account_id")
    .leftJoin("member", "member.id", "api_key.member_id")
    .selectAll("api_key")
    .select([
      "account.kind as account_kind",
      "account.disabled_at as account_disabled_at",
      "member.removed_at as member_removed_at",
    ])
    .select(isExpired.as("is_expired"))
    .select(sql<boolean>`coalesce(last_used_at < now() - ${useInterval}, true)`.as("use_is_stale"))
    .where("api_key.hash", "=", hash)
    .where("api_key.deleted_at", "is", null)
    .executeTakeFirst();
  if (row === undefined) throw keyRefusal(ErrorReason.KEY_UNKNOWN, "the key is not known");
  if (row.disabled || row.member_removed_at !== null || row.account_disabled_at !== null) {
    throw keyRefusal(ErrorReason.KEY_DISABLED, "the key is disabled");
  }
  if (row.is_expired) throw keyRefusal(ErrorReason.KEY_EXPIRED, "the key has expired");
  return row;
}

/** Waits for nobody: whoever has the key locked now leaves it to the next look-up. */
async function noteUse(database: AccountDatabase, hash: string): Promise<void> {
  await sql`
    UPDATE api_key SET last_used_at = now() WHERE hash = (
      SELECT hash FROM api_key
      WHERE hash = ${hash} AND coalesce(last_used_at < now() - ${useInterval}, true)
      FOR NO KEY UPDATE SKIP LOCKED
    )`.execute(database);
}
