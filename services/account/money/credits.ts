import { formatUsd } from "../../../lib/money/nano-usd.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { writeAudit } from "../accounts/audit.ts";
import type { AccountTransaction } from "../store.ts";
import { type CreditGrant, type GrantedCredit, grantCredit } from "./ledger.ts";

/**
 * Gives credit and writes the audit entry of it, once for each grant id. Throws `record_unknown`, and `invalid_body` for a
 * grant id that stands for another account or amount.
 */
export async function grantWithAudit(
  transaction: AccountTransaction,
  grant: CreditGrant,
  { operator, note }: { readonly operator: string; readonly note: string },
): Promise<GrantedCredit> {
  const { accountId, amountNanoUsd, grantId } = grant;
  const granted = await grantCredit(transaction, grant);
  if (granted.applied) {
    const amount = `${formatUsd(amountNanoUsd)} USD`;
    await writeAudit(transaction, {
      operator,
      action: "credit.grant",
      accountId,
      subject: grantId,
      note: note === "" ? amount : `${amount}: ${note}`,
    });
    return granted;
  }
  const earlier = await transaction
    .selectFrom("ledger_entry")
    .select(["account_id", "amount_nano_usd"])
    .where("grant_id", "=", grantId)
    .executeTakeFirstOrThrow();
  if (earlier.account_id !== accountId || earlier.amount_nano_usd !== amountNanoUsd) {
    const message = "stands for a grant to another account or of another amount";
    throw DomainError.invalid([{ path: "grant_id", message }]);
  }
  return granted;
}
