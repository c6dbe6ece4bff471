/** Whether holds, ledger, records and roll-ups say the same, in statements of the test's own. Everything has arrived before. */
import type { CrashDatabase } from "./crash-database.ts";

/** Reads both schemas. */
type Source = Pick<CrashDatabase, "query">;

/** Each an id, an account or a cell, and what does not agree. Empty when all does. */
export async function faultsOfBooks({ database }: { readonly database: Source }): Promise<readonly string[]> {
  const faults: string[] = [];
  for (const statement of [accountSums, requestById, rollUpCell]) {
    const rows = await database.query<{ fault: string }>(statement);
    faults.push(...rows.map(({ fault }) => fault));
  }
  return faults;
}

/** An account is charged what its ledger and its records add up to, and nothing is on hold. */
const accountSums = `
  SELECT format('account %s: charged %s, ledger %s, records %s, held %s, drift %s', id, charged, ledger, records, held, drift)
    AS fault
  FROM (
    SELECT id, charged_nano_usd AS charged, held_nano_usd AS held,
      granted_nano_usd - charged_nano_usd - balance_nano_usd AS drift,
      (SELECT coalesce(sum(amount_nano_usd), 0) FROM account.ledger_entry
        WHERE account_id = account.id AND credit = 'revenue') AS ledger,
      (SELECT coalesce(sum(charged_nano_usd), 0) FROM usage.record WHERE account_id = account.id) AS records
    FROM account.account
  ) AS books
  WHERE charged <> ledger OR charged <> records OR held <> 0 OR drift <> 0`;

/**
 * The ids of holds that were closed by an event are those of the records, of the same account and revision; a request
 * has one entry in the ledger, over what its record costs, or none if that is nothing.
 */
const requestById = `
  SELECT format('%s: hold %s %s, record %s %s, ledger %s in %s', coalesce(hold.id, event_id, generation_id), state,
    hold.revision, record.revision, charged_nano_usd, amount, entries) AS fault
  FROM (SELECT * FROM account.hold WHERE state NOT IN ('released', 'refused')) AS hold
  FULL JOIN usage.record ON event_id = hold.id
  FULL JOIN (
    SELECT generation_id, sum(amount_nano_usd) AS amount, count(*) AS entries FROM account.ledger_entry
    WHERE generation_id IS NOT NULL GROUP BY generation_id
  ) AS entry ON generation_id = coalesce(hold.id, event_id)
  WHERE (hold.account_id, hold.revision, state, cost_nano_usd, debited_nano_usd) IS DISTINCT FROM
      (record.account_id, record.revision, CASE WHEN record.revision > 0 THEN 'settled' ELSE 'lost' END, charged_nano_usd,
        charged_nano_usd)
    OR coalesce(amount, 0) <> charged_nano_usd OR entries > 1`;

/** A cell of the roll-up is the sum of its records; one of zeros is as good as none. */
const rollUpCell = `
  SELECT format('roll-up of %s on %s: %s requests for %s, its records are %s for %s', account_id, day,
    cell.requests, cell.charged_nano_usd, own.requests, own.charged_nano_usd) AS fault
  FROM usage.activity AS cell
  FULL JOIN (
    SELECT account_id, (ended_at AT TIME ZONE 'UTC')::date AS day, endpoint_id, key_hash, member_id, naming_id,
      count(*) AS requests, sum(charged_nano_usd) AS charged_nano_usd,
      sum(prompt_tokens + completion_tokens + reasoning_tokens + cached_tokens) AS tokens
    FROM usage.record GROUP BY 1, 2, 3, 4, 5, 6
  ) AS own USING (account_id, day, endpoint_id, key_hash, member_id, naming_id)
  WHERE coalesce(cell.requests, 0) <> coalesce(own.requests, 0)
    OR coalesce(cell.charged_nano_usd, 0) <> coalesce(own.charged_nano_usd, 0)
    OR coalesce(prompt_tokens + completion_tokens + reasoning_tokens + cached_tokens, 0) <> coalesce(tokens, 0)`;
