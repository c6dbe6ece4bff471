/**
 * Owns the records and their sums: an event changes both in one transaction, or neither.
 *
 * 1. A record is inserted if its id is new. Whether it was is the database's word, never a look beforehand: of two
 *    transactions with one id, the second waits for the first.
 * 2. If it was not, the record that stands is locked and read in a second statement, which sees what the first
 *    transaction left; the higher revision stays. Read committed is enough for that.
 * 3. What a replaced record had added is taken from its own cell, which may be of another day, endpoint or key.
 * 4. Locks are taken in one order: days, records by id, listings by id, namings by id, cells by key, those of days first. So replicas never wait in a circle.
 * 5. An event of a day whose records are pruned is refused: nothing would show any more whether it was counted.
 * 6. Sums by hour are changed as those by day, of days whose hours are not pruned: there, hours add up to days.
 */
import { sql } from "kysely";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import type { RefusedEvent } from "../../lib/events/batch-consumer.ts";
import { bytesOfEvent } from "../../lib/events/event-message.ts";
import { amountArrays, amountTerms, recordedNames } from "./amounts.ts";
import { fromRowEvent, RowWriter, type StorableEvent, storageFault } from "./convert.ts";
import { writeListings } from "./generations/listing.ts";
import { shareDays } from "./locks.ts";
import { readRetention } from "./retention.ts";
import { byDay, byHour, RollUp, writeChanges, writeNamings } from "./roll-up.ts";
import type { RecordRow, UsageDatabase, UsageTransaction } from "./store.ts";

/**
 * Records events and counts them, all or none; resolves with those that never can be. Copies and older revisions
 * change nothing. `signal` is heeded between statements. Throws when the batch must come again.
 */
export async function recordEvents(
  database: UsageDatabase,
  events: readonly GenerationEvent[],
  signal: AbortSignal,
  bytesOf = bytesOfEvent,
): Promise<RefusedEvent[]> {
  const refused: RefusedEvent[] = [];
  const highest = new Map<string, GenerationEvent>();
  for (const event of events) {
    const fault = storageFault(event);
    if (fault !== undefined) refused.push(refusalOf(event, fault));
    else if (event.revision > (highest.get(event.eventId)?.revision ?? -1)) highest.set(event.eventId, event);
  }
  if (highest.size === 0) return refused;
  const writer = new RowWriter();
  const batch = [...highest.values()]
    .map((event) => writer.toRowRecord(event, bytesOf(event)))
    .sort(byEventId); // 4.
  const late = await database
    .transaction()
    .setIsolationLevel("read committed") // 2.
    .execute((transaction) => recordBatch(transaction, batch, signal));
  return [...refused, ...late];
}

function refusalOf({ eventId, revision }: GenerationEvent, reason: string): RefusedEvent {
  return { eventId, revision, reason };
}

function byEventId({ row: a }: StorableEvent, { row: b }: StorableEvent): number {
  return a.event_id < b.event_id ? -1 : 1;
}

async function recordBatch(
  transaction: UsageTransaction,
  batch: readonly StorableEvent[],
  signal: AbortSignal,
): Promise<RefusedEvent[]> {
  await shareDays(
    transaction,
    batch.map(({ row }) => row.day),
  );
  const { from, hoursFrom } = await readRetention(transaction);
  const kept = batch.filter(({ row }) => row.day >= from); // 5.
  signal.throwIfAborted();
  const inserted = await insertRecords(transaction, kept);
  const rollUps = [
    { table: byDay, rollUp: new RollUp(byDay, from) },
    { table: byHour, rollUp: new RollUp(byHour, hoursFrom) }, // 6.
  ];
  const fresh = kept.filter(({ row }) => inserted.has(row.event_id));
  for (const { rollUp } of rollUps) for (const { row } of fresh) rollUp.add(row);
  signal.throwIfAborted();
  const rivals = kept.filter(({ row }) => !inserted.has(row.event_id));
  const { replaced, replacing } = await replaceRecords(transaction, rivals);
  for (const { rollUp } of rollUps) {
    for (const row of replaced) rollUp.subtract(row); // 3.
    for (const { row } of replacing) rollUp.add(row);
  }
  await writeListings(
    transaction,
    [...fresh, ...replacing].map(({ listing }) => listing),
  );
  signal.throwIfAborted();
  if (fresh.length > 0 || replacing.length > 0)
    await writeNamings(
      transaction,
      kept.map(({ naming }) => naming),
    );
  for (const { table, rollUp } of rollUps) await writeChanges(transaction, table, rollUp.changes());
  signal.throwIfAborted();
  return batch.flatMap(({ row }) => (row.day >= from ? [] : lateRefusal(row)));
}

function lateRefusal({ event_id, revision }: RecordRow): RefusedEvent {
  return { eventId: event_id, revision, reason: "the records of its day are pruned" };
}

/** Inserts what is new and returns its ids. */
async function insertRecords(
  transaction: UsageTransaction,
  batch: readonly StorableEvent[],
): Promise<ReadonlySet<string>> {
  if (batch.length === 0) return new Set();
  const { rows } = await sql<{ event_id: string }>`
    INSERT INTO record (event_id, revision, account_id, ended_at, endpoint_id, key_hash, member_id, naming_id,
      ${recordedTerms}, event)
    SELECT ${columns} FROM ${unnested(batch)}
    ON CONFLICT (event_id) DO NOTHING RETURNING event_id`.execute(transaction); // 1.
  return new Set(rows.map(({ event_id }) => event_id));
}

/** Replaces those of the records that stand whose revision is lower; returns what was replaced, and by what. */
async function replaceRecords(
  transaction: UsageTransaction,
  rivals: readonly StorableEvent[],
): Promise<{ replaced: readonly RecordRow[]; replacing: readonly StorableEvent[] }> {
  if (rivals.length === 0) return { replaced: [], replacing: [] };
  const standing = await lockRecords(transaction, rivals); // 2.
  if (standing.size !== rivals.length) throw new Error("a record was pruned while its event came again");
  const replacing = rivals.filter(({ row }) => row.revision > (standing.get(row.event_id)?.revision ?? 0));
  if (replacing.length === 0) return { replaced: [], replacing };
  const writer = new RowWriter();
  const replaced = replacing.flatMap(({ row }) => {
    const old = standing.get(row.event_id)?.event;
    return old ? [writer.toRowRecord(fromRowEvent({ event: old })).row] : [];
  });
  await shareDays(
    transaction,
    replaced.map(({ day }) => day),
  );
  await sql`
    UPDATE record SET (revision, account_id, ended_at, endpoint_id, key_hash, member_id, naming_id, ${recordedTerms},
      event) =
      (fresh.revision, fresh.account_id, fresh.ended_at, fresh.endpoint_id, fresh.key_hash, fresh.member_id,
        fresh.naming_id, ${amountTerms((amount) => sql`fresh.${amount}`, recordedNames)}, fresh.event)
    FROM (SELECT ${columns} FROM ${unnested(replacing)}) AS fresh
    WHERE record.event_id = fresh.event_id`.execute(transaction);
  return { replaced, replacing };
}

/** The records that stand, locked by id; with their events where a higher revision may come. */
async function lockRecords(transaction: UsageTransaction, rivals: readonly StorableEvent[]) {
  const ids = rivals.map(({ row }) => row.event_id);
  const { rows } = await sql<{ event_id: string; revision: number; event: Buffer | null }>`
    SELECT event_id, revision, CASE WHEN revision = 0 THEN event END AS event
    FROM record WHERE event_id = ANY(${ids}) ORDER BY event_id FOR UPDATE`.execute(transaction);
  return new Map(rows.map((row) => [row.event_id, row]));
}

const recordedTerms = amountTerms(undefined, recordedNames);

const columns = sql`event_id, revision, account_id, ended_at, endpoint_id, decode(key_hash, 'hex') AS key_hash,
  member_id, naming_id, ${recordedTerms},
  substring(bytes FROM first_byte FOR byte_count) AS event`;

/** Rows as a table of arrays, their events one behind the other in `bytes`, which spares a copy of each as hex. */
function unnested(batch: readonly StorableEvent[]) {
  const column = <K extends keyof RecordRow>(name: K) => batch.map(({ row }) => row[name]);
  const endedAt = batch.map(({ row }) => row.ended_at.toISOString());
  let total = 0;
  const firstBytes = batch.map(({ bytes }) => {
    total += bytes.length;
    return total - bytes.length + 1;
  });
  const byteCounts = batch.map(({ bytes }) => bytes.length);
  const all = Buffer.concat(
    batch.map(({ bytes }) => bytes),
    total,
  );
  return sql`(SELECT ${all}::bytea AS bytes) AS whole, unnest(${column("event_id")}::text[],
    ${column("revision")}::smallint[], ${column("account_id")}::uuid[], ${endedAt}::timestamptz[],
    ${column("endpoint_id")}::uuid[], ${column("key_hash")}::text[], ${column("member_id")}::uuid[],
    ${column("naming_id")}::uuid[], ${amountArrays(
      batch.map(({ row }) => row),
      recordedNames,
    )}, ${firstBytes}::int[], ${byteCounts}::int[])
    AS part (event_id, revision, account_id, ended_at, endpoint_id, key_hash, member_id, naming_id,
      ${recordedTerms}, first_byte, byte_count)`;
}
