import { formatUsd } from "../../../lib/money/nano-usd.ts";
import { DomainError } from "../../../lib/runtime/domain-error.ts";
import { writeAudit } from "../accounts/audit.ts";
import type { AccountTransaction } from "../store.ts";
import { bookedMove, type CreditMove, type MovedCredit, moveCredit } from "./ledger.ts";

/**
 * Gives credit or takes it back and writes the audit entry of it, once for each move id. Throws `record_unknown`,
 * `credits_exhausted` where less is free than is taken back, and `invalid_body` for an id that stands for another account
 * or amount.
 */
export async function moveWithAudit(
  transaction: AccountTransaction,
  move: CreditMove,
  { operator, note }: { readonly operator: string; readonly note: string },
): Promise<MovedCredit> {
  const { accountId, amountNanoUsd, moveId } = move;
  const isGrant = amountNanoUsd > 0n;
  const moved = await moveCredit(transaction, move);
  if (moved.applied) {
    const amount = `${formatUsd(amountNanoUsd)} USD`;
    await writeAudit(transaction, {
      operator,
      action: isGrant ? "credit.grant" : "credit.correct",
      accountId,
      subject: moveId,
      note: note === "" ? amount : `${amount}: ${note}`,
    });
    return moved;
  }
  const earlier = await bookedMove(transaction, moveId);
  if (earlier.accountId !== accountId || earlier.amountNanoUsd !== amountNanoUsd) {
    const message = "stands for a grant or correction of another account or amount";
    throw DomainError.invalid([{ path: isGrant ? "grant_id" : "correction_id", message }]);
  }
  return moved;
}
