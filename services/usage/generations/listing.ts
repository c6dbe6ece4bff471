import { sql } from "kysely";
import { fromRowEvent, toRowListing } from "../convert.ts";
import { addDays, startOfDayMs } from "../day.ts";
import type { ListingRow, UsageDatabase, UsageTransaction } from "../store.ts";

/** Lists records anew that are as of a higher revision than what is listed of them, by id. */
export async function writeListings(
  transaction: UsageTransaction,
  listings: readonly ListingRow[],
): Promise<void> {
  if (listings.length === 0) return;
  const sorted = listings.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1));
  const column = <K extends keyof ListingRow>(name: K) => sorted.map((listing) => listing[name]);
  const endedAt = sorted.map(({ ended_at }) => ended_at.toISOString());
  await sql`
    INSERT INTO listing (event_id, revision, account_id, ended_at, model, provider, key_hash, member_id, session_id,
      outcome, first_byte_ms)
    SELECT event_id, revision, account_id, ended_at, model, provider, decode(key_hash, 'hex'), member_id, session_id,
      outcome, first_byte_ms
    FROM unnest(${column("event_id")}::text[], ${column("revision")}::smallint[], ${column("account_id")}::uuid[],
      ${endedAt}::timestamptz[], ${column("model")}::text[], ${column("provider")}::text[],
      ${column("key_hash")}::text[], ${column("member_id")}::uuid[], ${column("session_id")}::text[],
      ${column("outcome")}::smallint[], ${column("first_byte_ms")}::integer[])
      AS fresh (event_id, revision, account_id, ended_at, model, provider, key_hash, member_id, session_id, outcome,
        first_byte_ms)
    ON CONFLICT (event_id) DO UPDATE SET (revision, account_id, ended_at, model, provider, key_hash, member_id,
        session_id, outcome, first_byte_ms) =
      (excluded.revision, excluded.account_id, excluded.ended_at, excluded.model, excluded.provider,
        excluded.key_hash, excluded.member_id, excluded.session_id, excluded.outcome, excluded.first_byte_ms)
    WHERE listing.revision < excluded.revision`.execute(transaction);
}

/** Lists what is not listed of a day's records; returns how many were not. `pause` comes between two steps. */
export async function listDay(
  database: UsageDatabase,
  day: string,
  pause: () => Promise<void> = async () => undefined,
  stepRecords = 500,
): Promise<number> {
  let listed = 0;
  let from = new Date(startOfDayMs(day));
  for (;;) {
    const step = await database.transaction().execute(async (transaction) => {
      const found = await unlisted(transaction, from, day, stepRecords);
      await writeListings(
        transaction,
        found.map((row) => toRowListing(fromRowEvent(row))),
      );
      return found;
    });
    listed += step.length;
    if (step.length < stepRecords) return listed;
    from = step.at(-1)?.ended_at ?? from;
    await pause();
  }
}

/**
 * Records of a day from an instant on, first ended first, that are not listed as they stand. They can't be pruned before
 * the transaction ends; those that others have locked are replaced, and listed, by them.
 */
async function unlisted(transaction: UsageTransaction, from: Date, day: string, limit: number) {
  const { rows } = await sql<{ event: Buffer; ended_at: Date }>`
    SELECT record.event, record.ended_at FROM record LEFT JOIN listing ON listing.event_id = record.event_id
    WHERE record.ended_at >= ${from.toISOString()}::timestamptz
      AND record.ended_at < ${`${addDays(day, 1)}T00:00:00Z`}::timestamptz
      AND (listing.revision IS NULL OR listing.revision < record.revision)
    ORDER BY record.ended_at LIMIT ${limit} FOR KEY SHARE OF record SKIP LOCKED`.execute(transaction);
  return rows;
}
