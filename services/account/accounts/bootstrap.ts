import { sql } from "kysely";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { createKey, type NewKey } from "../keys/keys.ts";
import { accountMigrations } from "../migrations.ts";
import { moveWithAudit } from "../money/credits.ts";
import type { AccountDatabase, AccountTables, KeyKindName } from "../store.ts";
import { createAccount } from "./accounts.ts";
import { writeAudit } from "./audit.ts";

/** The keys that the first account is made with; one that is undefined is not made. */
export interface BootstrapKeys {
  readonly inferenceKey: string | undefined;
  readonly managementKey: string | undefined;
}

/** What the first account is made with. */
export interface FirstAccount extends BootstrapKeys {
  /** Credit that it is given, nano-USD; 0 or undefined for none. */
  readonly creditNanoUsd?: bigint | undefined;
}

/** What the first start made: the account, and its keys themselves, which nothing stores. */
export interface BootstrapResult extends BootstrapKeys {
  readonly accountId: string;
}

/** Stands in the audit for what no operator did, and for the grant in the ledger. */
const bootstrapOperator = "bootstrap";

/** The configured account with those of its keys that are missing generated. */
export function withGeneratedKeys({ inferenceKey, managementKey, ...others }: FirstAccount): FirstAccount {
  return {
    ...others,
    inferenceKey: inferenceKey ?? generateApiKey(),
    managementKey: managementKey ?? generateApiKey(),
  };
}

/** The keys of an account that was made which nobody had given: whoever sees them now has them. */
export function unknownKeys(made: BootstrapKeys, given: BootstrapKeys): BootstrapKeys {
  return {
    inferenceKey: given.inferenceKey === undefined ? made.inferenceKey : undefined,
    managementKey: given.managementKey === undefined ? made.managementKey : undefined,
  };
}

/**
 * Makes a personal account with the given keys and credit if there is no account yet; undefined when there is one. Of several
 * processes that start at once exactly one makes it.
 */
export function bootstrapAccount(
  database: AccountDatabase,
  { creditNanoUsd = 0n, ...keys }: FirstAccount,
): Promise<BootstrapResult | undefined> {
  return database.transaction().execute(async (transaction) => {
    await sql`SELECT pg_advisory_xact_lock(hashtextextended('account.bootstrap', 0))`.execute(transaction);
    const present = await transaction.selectFrom("account").select("id").limit(1).executeTakeFirst();
    if (present !== undefined) return undefined;
    const { id } = await createAccount(transaction, { kind: "personal", name: "Default account" });
    const operator = bootstrapOperator;
    await writeAudit(transaction, { operator, action: "account.create", accountId: id, subject: id });
    const wanted = [
      [keys.inferenceKey, newKey("inference")],
      [keys.managementKey, newKey("management")],
    ] as const;
    for (const [secret, key] of wanted) {
      if (secret === undefined) continue;
      const { row } = await createKey(transaction, id, key, "member_id", secret);
      await writeAudit(transaction, { operator, action: "key.create", accountId: id, subject: row.hash });
    }
    if (creditNanoUsd > 0n) {
      const grant = { accountId: id, amountNanoUsd: creditNanoUsd, moveId: bootstrapOperator };
      await moveWithAudit(transaction, grant, { operator, note: "" });
    }
    return { accountId: id, ...keys };
  });
}

/** The same on a connection of its own, with those keys generated that nobody gave, unless told not to. */
export async function bootstrapDatabase(
  url: string,
  firstAccount: FirstAccount,
  { generateKeys = true } = {},
): Promise<BootstrapResult | undefined> {
  const { schema } = accountMigrations;
  const database = connectDatabase<AccountTables>({ url, schema, log: silentLog, maxConnections: 1 });
  try {
    const wanted = generateKeys ? withGeneratedKeys(firstAccount) : firstAccount;
    return await bootstrapAccount(database, wanted);
  } finally {
    await database.destroy();
  }
}

function newKey(kind: KeyKindName): NewKey {
  return {
    name: kind === "inference" ? "First inference key" : "First management key",
    kind,
    scopes: kind === "inference" ? ["speech", "images"] : [],
    expires_at: null,
    limit_nano_usd: null,
    limit_reset: null,
    include_byok_in_limit: false,
    rate_limit_per_minute: null,
    member_id: null,
  };
}
