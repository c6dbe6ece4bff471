import { sql } from "kysely";
import type { AccountBooks } from "../../../gen/media/account/v1/account_admin_pb.ts";
import { readPages } from "../../../lib/database/read-pages.ts";
import { unknownRecord } from "../keys/keys.ts";
import type { AccountDatabase } from "../store.ts";

/** What an account's books say beside the sums that they must equal, nano-USD; the message says which. */
type Books = Omit<AccountBooks, "$typeName" | "$unknown">;

/**
 * The books of one account or of all, by account id, at most 1,000 at a time, all as they were at one moment. Throws
 * `record_unknown` without the one account.
 */
export async function* listBooks(
  database: AccountDatabase,
  accountId: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<readonly Books[]> {
  let isFound = accountId === undefined;
  for await (const books of readPages(database, booksOf(accountId), signal)) {
    isFound = true;
    yield books;
  }
  if (!isFound) throw unknownRecord();
}

function booksOf(accountId: string | undefined) {
  return sql<Books>`
    SELECT account.id AS "accountId",
      granted_nano_usd AS "grantedNanoUsd", coalesce(ledger.granted, 0)::bigint AS "ledgerGrantedNanoUsd",
      charged_nano_usd AS "chargedNanoUsd", coalesce(ledger.charged, 0)::bigint AS "ledgerChargedNanoUsd",
      held_nano_usd AS "heldNanoUsd", coalesce(open.amount, 0)::bigint AS "openHoldsNanoUsd",
      coalesce(open.key_amount, 0)::bigint AS "openHoldsKeyNanoUsd",
      coalesce(line.held, 0)::bigint AS "keyHeldNanoUsd", coalesce(line.days_held, 0)::bigint AS "keyDaysHeldNanoUsd",
      coalesce(line.spent, 0)::bigint AS "keySpentNanoUsd", coalesce(line.days_spent, 0)::bigint AS "keyDaysSpentNanoUsd",
      coalesce(line.byok, 0)::bigint AS "keyByokNanoUsd", coalesce(line.days_byok, 0)::bigint AS "keyDaysByokNanoUsd"
    FROM account
    LEFT JOIN (
      SELECT account_id,
        sum(CASE 'granted' WHEN debit THEN amount_nano_usd WHEN credit THEN -amount_nano_usd END) AS granted,
        sum(CASE 'revenue' WHEN credit THEN amount_nano_usd WHEN debit THEN -amount_nano_usd END) AS charged
      FROM ledger_entry GROUP BY account_id
    ) AS ledger ON ledger.account_id = account.id
    LEFT JOIN (
      SELECT account_id, sum(amount_nano_usd) AS amount, sum(key_amount_nano_usd) AS key_amount
      FROM hold WHERE state = 'open' GROUP BY account_id
    ) AS open ON open.account_id = account.id
    LEFT JOIN (
      SELECT account_id, sum(held_nano_usd) AS held, sum(spent_nano_usd) AS spent, sum(byok_nano_usd) AS byok,
        sum(days_held) AS days_held, sum(days_spent) AS days_spent, sum(days_byok) AS days_byok
      FROM key_line LEFT JOIN (
        SELECT rate_bucket AS line_id, sum(held_nano_usd) AS days_held, sum(spent_nano_usd) AS days_spent,
          sum(byok_nano_usd) AS days_byok
        FROM key_line_day GROUP BY rate_bucket
      ) AS day ON day.line_id = rate_bucket
      GROUP BY account_id
    ) AS line ON line.account_id = account.id
    ${accountId === undefined ? sql`` : sql`WHERE account.id = ${accountId}`}
    ORDER BY account.id`;
}
