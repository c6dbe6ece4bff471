import type { AccountDatabase, BookName } from "../store.ts";

/** An entry of the ledger, by the words of its table. */
export interface LedgerRow {
  readonly at: Date;
  readonly amount_nano_usd: bigint;
  readonly generation_id: string | null;
  /** Of a grant or a correction. */
  readonly grant_id: string | null;
  /** The book that it is taken from. */
  readonly debit: BookName;
}

/** A page of the ledger, and the entry before which the next one begins, if there is one. */
interface LedgerPage {
  readonly rows: readonly LedgerRow[];
  readonly nextId: bigint | undefined;
}

/** The newest entries of an account, of those before the one with the id `beforeId` where it is given. */
export async function listLedger(
  database: AccountDatabase,
  { accountId, beforeId, limit }: { accountId: string; beforeId: bigint | undefined; limit: number },
): Promise<LedgerPage> {
  let query = database
    .selectFrom("ledger_entry")
    .select(["id", "at", "amount_nano_usd", "generation_id", "grant_id", "debit"])
    .where("account_id", "=", accountId);
  if (beforeId !== undefined) query = query.where("id", "<", beforeId);
  const found = await query
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const rows = found.slice(0, limit);
  return { rows, nextId: found.length > limit ? rows.at(-1)?.id : undefined };
}
