import { sql } from "kysely";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import { formatUsd } from "../../../lib/money/nano-usd.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { unknownRecord } from "../keys/keys.ts";
import type { AccountTransaction } from "../store.ts";

/*
 * Owns the credit that operators give and take back. What requests are charged is written by the function `settle` of
 * the schema.
 * 1. An account's granted and charged amounts are the sums of its ledger entries; both change in one transaction.
 * 2. A move id moves credit once, whatever it is asked for again; grants and corrections share their ids.
 * 3. What is taken back was free when the account was locked: it was neither spent nor on hold, so that no request under
 *    way costs more than there is.
 */

/** Credit to give, above 0 nano-USD, or to take back, below 0; once for each move id. */
export interface CreditMove {
  readonly accountId: string;
  readonly amountNanoUsd: bigint;
  readonly moveId: string;
}

/** The account's balance after a move, holds not taken off, and whether this call made it. */
export interface MovedCredit {
  readonly balanceNanoUsd: bigint;
  readonly applied: boolean;
}

/**
 * Moves credit to or from an account, once for each move id. Throws `record_unknown` without the account, and
 * `credits_exhausted` where less is free than is taken back.
 */
export async function moveCredit(
  transaction: AccountTransaction,
  { accountId, amountNanoUsd, moveId }: CreditMove,
): Promise<MovedCredit> {
  const account = await transaction
    .selectFrom("account")
    .select(["balance_nano_usd", "held_nano_usd"])
    .where("id", "=", accountId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (account === undefined) throw unknownRecord();
  const isGrant = amountNanoUsd > 0n;
  const entry = await transaction
    .insertInto("ledger_entry")
    .values({
      account_id: accountId,
      debit: isGrant ? "granted" : "customer",
      credit: isGrant ? "customer" : "granted",
      amount_nano_usd: isGrant ? amountNanoUsd : -amountNanoUsd,
      grant_id: moveId,
    })
    .onConflict((conflict) => conflict.column("grant_id").where("grant_id", "is not", null).doNothing()) // 2.
    .returning("id")
    .executeTakeFirst();
  if (entry === undefined) return { balanceNanoUsd: account.balance_nano_usd, applied: false };
  const freeNanoUsd = account.balance_nano_usd - account.held_nano_usd;
  if (!isGrant && freeNanoUsd + amountNanoUsd < 0n) throw notFree(freeNanoUsd); // 3.
  const { balance_nano_usd: balanceNanoUsd } = await transaction
    .updateTable("account")
    .set({ granted_nano_usd: sql<bigint>`granted_nano_usd + ${amountNanoUsd}` }) // 1.
    .where("id", "=", accountId)
    .returning("balance_nano_usd")
    .executeTakeFirstOrThrow();
  return { balanceNanoUsd, applied: true };
}

function notFree(freeNanoUsd: bigint): DomainError {
  const message = `the account has ${formatUsd(freeNanoUsd)} USD free, and no more than that can be taken back`;
  return new DomainError(ErrorReason.CREDITS_EXHAUSTED, message);
}

/** What a move id stands for in the ledger. */
export async function bookedMove(
  transaction: AccountTransaction,
  moveId: string,
): Promise<Pick<CreditMove, "accountId" | "amountNanoUsd">> {
  const { account_id, amount_nano_usd, debit } = await transaction
    .selectFrom("ledger_entry")
    .select(["account_id", "amount_nano_usd", "debit"])
    .where("grant_id", "=", moveId)
    .executeTakeFirstOrThrow();
  return { accountId: account_id, amountNanoUsd: debit === "granted" ? amount_nano_usd : -amount_nano_usd };
}
