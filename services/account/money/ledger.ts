import { sql } from "kysely";
import { unknownRecord } from "../keys/keys.ts";
import type { AccountTransaction } from "../store.ts";

/*
 * Owns the credit that operators give. What requests are charged is written by the function `settle` of the schema.
 * 1. An account's granted and charged amounts are the sums of its ledger entries; both change in one transaction.
 * 2. A grant id is granted once, whatever it is asked for again.
 */

/** Credit to give: more than 0 nano-USD, once for each grant id. */
export interface CreditGrant {
  readonly accountId: string;
  readonly amountNanoUsd: bigint;
  readonly grantId: string;
}

/** The account's balance after a grant, holds not taken off, and whether this call granted it. */
export interface GrantedCredit {
  readonly balanceNanoUsd: bigint;
  readonly applied: boolean;
}

/** Gives credit to an account, once for each grant id. Throws `record_unknown` without the account. */
export async function grantCredit(
  transaction: AccountTransaction,
  { accountId, amountNanoUsd, grantId }: CreditGrant,
): Promise<GrantedCredit> {
  const account = await transaction
    .selectFrom("account")
    .select("balance_nano_usd")
    .where("id", "=", accountId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (account === undefined) throw unknownRecord();
  const entry = await transaction
    .insertInto("ledger_entry")
    .values({
      account_id: accountId,
      debit: "granted",
      credit: "customer",
      amount_nano_usd: amountNanoUsd,
      grant_id: grantId,
    })
    .onConflict((conflict) => conflict.column("grant_id").where("grant_id", "is not", null).doNothing()) // 2.
    .returning("id")
    .executeTakeFirst();
  if (entry === undefined) return { balanceNanoUsd: account.balance_nano_usd, applied: false };
  const { balance_nano_usd: balanceNanoUsd } = await transaction
    .updateTable("account")
    .set({ granted_nano_usd: sql<bigint>`granted_nano_usd + ${amountNanoUsd}` }) // 1.
    .where("id", "=", accountId)
    .returning("balance_nano_usd")
    .executeTakeFirstOrThrow();
  return { balanceNanoUsd, applied: true };
}
