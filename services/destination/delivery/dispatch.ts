/**
 * Owns the way of events from the topic into the queues of destinations: a batch of them is queued in one transaction,
 * after which the group goes on. Receivers have no part in it.
 *
 * 1. An event is known from the moment in which it is queued: copies of it, and lower revisions, are never queued after
 *    it. Which of two transactions comes first is the database's word.
 * 2. A higher revision takes the place of a lower one that waits and is in no batch yet; a batch keeps what it holds.
 * 3. Positions are given out under the locks of the queues, so that what is visible of a queue has no gaps: whatever comes
 *    later stands behind it.
 * 4. Whether a destination is there and enabled is read under its queue's lock; what is not is given nothing.
 * 5. Locks are taken in one order: known events by id, queues by id. So replicas never wait in a circle.
 * 6. An event is redacted before it is stored.
 */
import { toBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import {
  type GenerationEvent,
  GenerationEventSchema,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import type { RefusedEvent } from "../../../lib/events/batch-consumer.ts";
import { endedAtMs } from "../../../lib/events/event-message.ts";
import type { DestinationDatabase, DestinationRow, DestinationTransaction } from "../store.ts";
import { type DisclosureMask, disclosureMaskOf, redact } from "./redact.ts";
import { selects } from "./select.ts";

/** An open destination, as far as it decides about what it is given. */
type Taker = Omit<DestinationRow, "sealed" | "type" | "name" | "version" | "created_at" | "updated_at">;

/** An event on its way into the queue of one destination. */
interface Queued {
  readonly destinationId: string;
  readonly event: GenerationEvent;
  readonly mask: DisclosureMask;
}

interface Dispatched {
  /** How many wait, counted for each destination. */
  readonly queuedCount: number;
  /** Those that can't be stored. */
  readonly refused: readonly RefusedEvent[];
}

/** The last millisecond of the year 9999. */
const lastMs = 253_402_300_799_999;

/**
 * Queues events for the destinations of their accounts, all or none. `signal` is heeded between statements. Throws when
 * the batch must come again.
 */
export async function dispatchEvents(
  database: DestinationDatabase,
  events: readonly GenerationEvent[],
  signal: AbortSignal,
): Promise<Dispatched> {
  const isStorable = (event: GenerationEvent) => endedAtMs(event) >= 0 && endedAtMs(event) <= lastMs;
  const reason = "ended_at lies outside of the years 1970 to 9999";
  const refused = events
    .filter((event) => !isStorable(event))
    .map(({ eventId, revision }) => ({ eventId, revision, reason }));
  return { queuedCount: await queueEvents(database, events.filter(isStorable), signal), refused };
}

async function queueEvents(
  database: DestinationDatabase,
  events: readonly GenerationEvent[],
  signal: AbortSignal,
): Promise<number> {
  const accounts = await accountsWithDestinations(database, events);
  const highest = new Map<string, GenerationEvent>();
  for (const event of events) {
    if (!accounts.has(event.accountId)) continue;
    if (event.revision > (highest.get(event.eventId)?.revision ?? -1)) highest.set(event.eventId, event);
  }
  if (highest.size === 0) return 0;
  return database
    .transaction()
    .setIsolationLevel("read committed")
    .execute((transaction) => dispatchBatch(transaction, [...highest.values()], signal));
}

/** A look beforehand that spares most events everything else; what it misses began after the event had come. */
async function accountsWithDestinations(
  database: DestinationDatabase,
  events: readonly GenerationEvent[],
): Promise<ReadonlySet<string>> {
  const ids = [...new Set(events.map(({ accountId }) => accountId))];
  const { rows } = await sql<{ account_id: string }>`
    SELECT DISTINCT account_id FROM lane WHERE account_id = ANY(${ids}::uuid[]) AND enabled`.execute(
    database,
  );
  return new Set(rows.map(({ account_id }) => account_id));
}

async function dispatchBatch(
  transaction: DestinationTransaction,
  events: readonly GenerationEvent[],
  signal: AbortSignal,
): Promise<number> {
  const fresh = await rememberEvents(transaction, events); // 1., 5.
  signal.throwIfAborted();
  const takers = await lockTakers(transaction, fresh); // 3., 4., 5.
  signal.throwIfAborted();
  const queued = fresh.flatMap((event) => queuedOf(event, takers.get(event.accountId) ?? []));
  const destinationIds = [...takers.values()].flat().map(({ id }) => id);
  await dropReplaced(transaction, fresh, destinationIds); // 2.
  if (queued.length > 0) {
    await insertPending(transaction, queued);
    await markDue(transaction, [...new Set(queued.map(({ destinationId }) => destinationId))]);
  }
  signal.throwIfAborted();
  return queued.length;
}

/** Notes the events and returns those of which neither this nor a higher revision was known, in their order. */
async function rememberEvents(
  transaction: DestinationTransaction,
  events: readonly GenerationEvent[],
): Promise<readonly GenerationEvent[]> {
  const { rows } = await sql<{ event_id: string }>`
    INSERT INTO known_event AS known (event_id, revision, ended_at)
    SELECT event_id, revision, ended_at
    FROM unnest(${events.map(({ eventId }) => eventId)}::text[], ${events.map(({ revision }) => revision)}::smallint[],
      ${events.map((event) => new Date(endedAtMs(event)).toISOString())}::timestamptz[])
      AS part (event_id, revision, ended_at)
    ORDER BY event_id COLLATE "C"
    ON CONFLICT (event_id) DO UPDATE SET revision = excluded.revision, ended_at = excluded.ended_at
      WHERE known.revision < excluded.revision
    RETURNING event_id`.execute(transaction);
  const fresh = new Set(rows.map(({ event_id }) => event_id));
  return events.filter(({ eventId }) => fresh.has(eventId));
}

/** The open destinations of the events' accounts, by account, with their queues locked. */
async function lockTakers(
  transaction: DestinationTransaction,
  events: readonly GenerationEvent[],
): Promise<ReadonlyMap<string, readonly Taker[]>> {
  const accountIds = [...new Set(events.map(({ accountId }) => accountId))];
  const { rows: queues } = await sql<{ destination_id: string }>`
    SELECT destination_id FROM lane WHERE account_id = ANY(${accountIds}::uuid[]) AND enabled
    ORDER BY destination_id FOR NO KEY UPDATE`.execute(transaction);
  const ids = queues.map(({ destination_id }) => destination_id);
  if (ids.length === 0) return new Map();
  const rows: Taker[] = await transaction
    .selectFrom("destination")
    .select(["id", "account_id", "privacy_mode", "sampling_rate", "key_hashes", "filter_rules"])
    .select(["tells_cost", "tells_identity", "tells_request_context"])
    .where(sql<boolean>`id = ANY(${ids}::uuid[])`)
    .execute();
  return Map.groupBy(rows, ({ account_id }) => account_id);
}

function queuedOf(event: GenerationEvent, takers: readonly Taker[]): Queued[] {
  return takers
    .filter((taker) => selects(taker, event))
    .map((taker) => ({ destinationId: taker.id, event, mask: disclosureMaskOf(taker) }));
}

/** Takes away what waits of lower revisions and is in no batch; only those of revision 0 are ever replaced. */
async function dropReplaced(
  transaction: DestinationTransaction,
  events: readonly GenerationEvent[],
  destinationIds: readonly string[],
): Promise<void> {
  const replacing = events.filter(({ revision }) => revision > 0).map(({ eventId }) => eventId);
  if (replacing.length === 0 || destinationIds.length === 0) return;
  await sql`DELETE FROM pending USING lane
    WHERE pending.event_id = ANY(${replacing}) AND pending.revision = 0
      AND pending.destination_id = ANY(${destinationIds}::uuid[]) AND lane.destination_id = pending.destination_id
      AND (lane.batch_through IS NULL OR pending.position > lane.batch_through)`.execute(transaction);
}

/** An event that several destinations get alike is sent once and cut out of the whole for each: no copies as hex. */
async function insertPending(transaction: DestinationTransaction, queued: readonly Queued[]): Promise<void> {
  const parts = new Parts();
  const places = queued.map(({ event, mask }) => parts.placeOf(event, mask));
  await sql`
    INSERT INTO pending (destination_id, event_id, revision, tells, event)
    SELECT destination_id, event_id, revision, tells, substring(bytes FROM first_byte FOR byte_count)
    FROM (SELECT ${parts.concat()}::bytea AS bytes) AS whole,
      unnest(${queued.map(({ destinationId }) => destinationId)}::uuid[],
        ${queued.map(({ event }) => event.eventId)}::text[], ${queued.map(({ event }) => event.revision)}::smallint[],
        ${queued.map(({ mask }) => mask)}::smallint[], ${places.map(({ first }) => first)}::int[],
        ${places.map(({ count }) => count)}::int[]) WITH ORDINALITY
      AS part (destination_id, event_id, revision, tells, first_byte, byte_count, number)
    ORDER BY number`.execute(transaction);
}

/** Redacted events behind each other, each form of an event once. */
class Parts {
  readonly #bytes: Uint8Array[] = [];
  readonly #places = new Map<string, { readonly first: number; readonly count: number }>();
  #total = 0;

  /** Where an event's bytes stand; the first byte of all is 1. */
  placeOf(event: GenerationEvent, mask: DisclosureMask) {
    const key = `${mask} ${event.eventId}`;
    let place = this.#places.get(key);
    if (place === undefined) {
      const bytes = toBinary(GenerationEventSchema, redact(event, mask)); // 6.
      place = { first: this.#total + 1, count: bytes.length };
      this.#bytes.push(bytes);
      this.#total += bytes.length;
      this.#places.set(key, place);
    }
    return place;
  }

  concat(): Buffer {
    return Buffer.concat(this.#bytes, this.#total);
  }
}

/** What waits for nothing else is due; what is sent just now, or rests after a failure, is left as it is. */
async function markDue(
  transaction: DestinationTransaction,
  destinationIds: readonly string[],
): Promise<void> {
  await sql`UPDATE lane SET due_at = greatest(now(), not_before)
    WHERE destination_id = ANY(${destinationIds}::uuid[]) AND due_at IS NULL`.execute(transaction);
}
