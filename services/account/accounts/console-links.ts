import { hash, randomBytes } from "node:crypto";
import { sql } from "kysely";
import { createKey, type NewKey, unknownRecord } from "../keys/keys.ts";
import type { AccountDatabase, AccountTransaction } from "../store.ts";
import { getAccount } from "./accounts.ts";
import { writeAudit } from "./audit.ts";

/*
 * Owns the codes by which a page of the console signs in.
 * 1. A code is stored as its hash; the code itself is returned once by what makes it.
 * 2. Whoever takes a code's row out has it: of several who bring it at once one gets keys. When the keys can't be made the
 *    row stays.
 */

const codeBytes = 32;
const codePattern = /^[\w-]{43}$/;
const linkLife = sql`interval '10 minutes'`;
const keyLife = sql`interval '24 hours'`;

/** A code that was made, and when it serves no more. */
export interface ConsoleLink {
  readonly code: string;
  readonly expiresAt: Date;
}

/** The keys that a code was exchanged for, and when they expire. */
export interface ConsoleKeys {
  readonly inferenceKey: string;
  readonly managementKey: string;
  readonly expiresAt: Date;
}

/** Makes a code for an account; codes that nobody has used in time go. Throws `record_unknown` without the account. */
export async function createConsoleLink(
  database: AccountDatabase,
  accountId: string,
  operator: string,
): Promise<ConsoleLink> {
  await getAccount(database, accountId);
  const code = randomBytes(codeBytes).toString("base64url");
  return database.transaction().execute(async (transaction) => {
    await transaction.deleteFrom("console_link").where("expires_at", "<=", sql<Date>`now()`).execute();
    const subject = hash("sha256", code, "hex"); // 1.
    const { expires_at } = await transaction
      .insertInto("console_link")
      .values({ hash: subject, account_id: accountId, expires_at: sql<Date>`now() + ${linkLife}` })
      .returning("expires_at")
      .executeTakeFirstOrThrow();
    await writeAudit(transaction, { operator, action: "console_link.create", accountId, subject });
    return { code, expiresAt: expires_at };
  });
}

/**
 * Exchanges a code for an inference and a management key of its account. Throws `record_unknown` for one that is not
 * known, was used or is too old, and `count_limit_reached`.
 */
export async function redeemConsoleLink(database: AccountDatabase, code: string): Promise<ConsoleKeys> {
  if (!codePattern.test(code)) throw unknownRecord();
  return database.transaction().execute(async (transaction) => {
    const subject = hash("sha256", code, "hex");
    const link = await transaction
      .deleteFrom("console_link") // 2.
      .where("hash", "=", subject)
      .where("expires_at", ">", sql<Date>`now()`)
      .returning(["account_id", sql<Date>`now() + ${keyLife}`.as("keys_expire_at")])
      .executeTakeFirst();
    if (link === undefined) throw unknownRecord();
    const { account_id: accountId, keys_expire_at: expiresAt } = link;
    await removeExpiredKeys(transaction, accountId);
    const inference = await createKey(transaction, accountId, consoleKey("inference", expiresAt));
    const management = await createKey(transaction, accountId, consoleKey("management", expiresAt));
    const note = `keys ${inference.row.hash} and ${management.row.hash}`;
    await writeAudit(transaction, {
      operator: "console",
      action: "console_link.redeem",
      accountId,
      subject,
      note,
    });
    return { inferenceKey: inference.secret, managementKey: management.secret, expiresAt };
  });
}

/** Of the keys that were made here before, those that work no more: nobody would ever take them away. */
async function removeExpiredKeys(transaction: AccountTransaction, accountId: string): Promise<void> {
  await transaction
    .updateTable("api_key")
    .set({ deleted_at: sql<Date>`now()` })
    .where("account_id", "=", accountId)
    .where("is_for_console", "=", true)
    .where("expires_at", "<=", sql<Date>`now()`)
    .where("deleted_at", "is", null)
    .execute();
}

function consoleKey(kind: NewKey["kind"], expiresAt: Date): NewKey {
  return {
    name: "Console",
    kind,
    scopes: kind === "inference" ? ["speech", "images"] : [],
    expires_at: expiresAt,
    is_for_console: true,
    limit_nano_usd: null,
    limit_reset: null,
    include_byok_in_limit: false,
    rate_limit_per_minute: null,
    member_id: null,
  };
}
