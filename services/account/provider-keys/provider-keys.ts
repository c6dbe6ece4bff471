import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { SealError, type Sealer } from "../../../lib/secrets/seal.ts";
import { unknownRecord } from "../keys/keys.ts";
import type { AccountDatabase, AccountTransaction, ProviderKeyRow } from "../store.ts";

/*
 * Owns accounts' own keys at providers.
 * 1. A key is stored sealed, bound to its account, record and provider, and leaves this service for the processes that
 *    call the provider alone.
 * 2. An account has at most one key for a provider.
 * 3. Of a deleted key the sealed bytes are erased.
 */

interface NewProviderKey {
  readonly accountId: string;
  readonly providerSlug: string;
  readonly secret: string;
  /** Empty for none. */
  readonly name: string;
  /** Left unset: false. */
  readonly disabled?: boolean;
}

/** What of a provider key is to change: undefined stays as it is. */
export interface ProviderKeyChange {
  readonly name: string | undefined;
  readonly disabled: boolean | undefined;
  readonly secret: string | undefined;
}

/** How many provider keys were sealed anew, were sealed with the newest key before, can't be opened. */
type Resealed = Readonly<Record<"resealed" | "current" | "unreadable", number>>;

const shown = ["id", "account_id", "provider_slug", "name", "label", "disabled", "created_at"] as const;
const resealBatchSize = 200;

type Bound = Pick<ProviderKeyRow, "id" | "account_id" | "provider_slug">;

function boundTo({ id, account_id, provider_slug }: Bound): readonly string[] {
  return ["provider_key", account_id, id, provider_slug]; // 1.
}

/** Stores a provider key. Throws `count_limit_reached` when there is one for the provider. */
export async function createProviderKey(
  database: AccountDatabase,
  sealer: Sealer,
  { accountId, providerSlug, secret, name, disabled = false }: NewProviderKey,
): Promise<ProviderKeyRow> {
  const bound = { id: randomUUID(), account_id: accountId, provider_slug: providerSlug };
  const row = await database
    .insertInto("provider_key")
    .values({ ...bound, name, disabled, ...sealed(sealer, bound, secret) })
    // 2.
    .onConflict((conflict) =>
      conflict.columns(["account_id", "provider_slug"]).where("deleted_at", "is", null).doNothing(),
    )
    .returning(shown)
    .executeTakeFirst();
  if (row !== undefined) return row;
  const message = "an account has at most one key for a provider";
  throw new DomainError(ErrorReason.COUNT_LIMIT_REACHED, message);
}

/** One provider key of an account. Throws `record_unknown`. */
export async function getProviderKey(
  database: AccountDatabase,
  accountId: string,
  id: string,
): Promise<ProviderKeyRow> {
  const row = await database
    .selectFrom("provider_key")
    .select(shown)
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (row === undefined) throw unknownRecord();
  return row;
}

/** Changes a provider key. Throws `record_unknown`. */
export async function updateProviderKey(
  database: AccountDatabase,
  sealer: Sealer,
  bound: Pick<Bound, "id" | "account_id">,
  { name, disabled, secret }: ProviderKeyChange,
): Promise<ProviderKeyRow> {
  const row = await getProviderKey(database, bound.account_id, bound.id);
  const change = {
    ...(name === undefined ? {} : { name }),
    ...(disabled === undefined ? {} : { disabled }),
    ...(secret === undefined ? {} : sealed(sealer, row, secret)),
  };
  if (Object.keys(change).length === 0) return row;
  const changed = await database
    .updateTable("provider_key")
    .set(change)
    .where("id", "=", row.id)
    .where("deleted_at", "is", null)
    .returning(shown)
    .executeTakeFirst();
  if (changed === undefined) throw unknownRecord();
  return changed;
}

function sealed(sealer: Sealer, bound: Bound, secret: string) {
  return { label: maskSecret(secret), sealed: sealer.seal(secret, boundTo(bound)) };
}

/** A secret for people to recognise, such as `sk-…wxyz`; of a short one nothing is shown. */
export function maskSecret(secret: string): string {
  return secret.length < 24 ? "…" : `${secret.slice(0, 3)}…${secret.slice(-4)}`;
}

/** An account's provider keys, oldest first. */
export function listProviderKeys(database: AccountDatabase, accountId: string): Promise<ProviderKeyRow[]> {
  return database
    .selectFrom("provider_key")
    .select(shown)
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null)
    .orderBy("created_at")
    .orderBy("id")
    .execute();
}

/** Deletes a provider key. Throws `record_unknown`, also for one deleted before. */
export async function deleteProviderKey(
  database: AccountDatabase,
  accountId: string,
  id: string,
): Promise<void> {
  const deleted = await database
    .updateTable("provider_key")
    .set({ sealed: null, deleted_at: sql<Date>`now()` }) // 3.
    .where("id", "=", id)
    .where("account_id", "=", accountId)
    .where("deleted_at", "is", null)
    .returning("id")
    .executeTakeFirst();
  if (deleted === undefined) throw unknownRecord();
}

/** An account's key for a provider, opened; undefined when it has none or left it unused. Throws SealError. */
export async function openProviderKey(
  database: AccountDatabase,
  sealer: Sealer,
  { accountId, providerSlug }: Pick<NewProviderKey, "accountId" | "providerSlug">,
): Promise<{ readonly id: string; readonly secret: string } | undefined> {
  const row = await database
    .selectFrom("provider_key")
    .select(["id", "account_id", "provider_slug", "sealed"])
    .where("account_id", "=", accountId)
    .where("provider_slug", "=", providerSlug)
    .where("deleted_at", "is", null)
    .where("disabled", "=", false)
    .executeTakeFirst();
  if (row === undefined || row.sealed === null) return undefined;
  return { id: row.id, secret: sealer.open(row.sealed, boundTo(row)) };
}

/**
 * Seals what was sealed with an older master key with the newest, a batch a transaction; `note` writes into the
 * transaction of a batch that changed something. Repeating it goes on where it was cut off.
 */
export async function resealProviderKeys(
  database: AccountDatabase,
  sealer: Sealer,
  note: (transaction: AccountTransaction, resealed: number) => Promise<void>,
  signal: AbortSignal,
): Promise<Resealed> {
  const sums = { resealed: 0, current: 0, unreadable: 0 };
  let after: string | undefined;
  do {
    signal.throwIfAborted();
    after = await database.transaction().execute(async (transaction) => {
      const rows = await lockBatch(transaction, after);
      let resealed = 0;
      for (const row of rows) {
        const outcome = await reseal(transaction, sealer, row);
        sums[outcome] += 1;
        if (outcome === "resealed") resealed += 1;
      }
      if (resealed > 0) await note(transaction, resealed);
      return rows.length < resealBatchSize ? undefined : rows.at(-1)?.id;
    });
  } while (after !== undefined);
  return sums;
}

function lockBatch(transaction: AccountTransaction, after: string | undefined) {
  let keys = transaction
    .selectFrom("provider_key")
    .select(["id", "account_id", "provider_slug", "sealed"])
    .where("deleted_at", "is", null);
  if (after !== undefined) keys = keys.where("id", ">", after);
  return keys.orderBy("id").limit(resealBatchSize).forUpdate().execute();
}

async function reseal(
  transaction: AccountTransaction,
  sealer: Sealer,
  row: Bound & { readonly sealed: Buffer | null },
): Promise<keyof Resealed> {
  try {
    if (row.sealed === null) return "unreadable";
    if (sealer.keyIdOf(row.sealed) === sealer.keyId) return "current";
    const sealed = sealer.seal(sealer.open(row.sealed, boundTo(row)), boundTo(row));
    await transaction.updateTable("provider_key").set({ sealed }).where("id", "=", row.id).execute();
    return "resealed";
  } catch (thrown) {
    if (thrown instanceof SealError) return "unreadable";
    throw thrown;
  }
}
