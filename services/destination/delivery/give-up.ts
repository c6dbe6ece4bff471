/**
 * Gives up events that have waited for too long, which bounds what waits for a destination that is away, paused or
 * disabled. Times are the database's.
 *
 * 1. A batch is given up as a whole, once its newest event has waited too long; what is in no batch, event by event.
 * 2. What is being sent just now is left alone.
 * 3. What was given up stands in the log of the destination's deliveries.
 */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import type { DestinationDatabase, DestinationTransaction } from "../store.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";

/** Events of a destination that were given up together. */
export interface GivenUp {
  readonly destinationId: string;
  readonly eventCount: number;
}

type GiveUpLimits = Pick<DeliveryLimits, "giveUpAfterMs" | "keptDeliveries">;

const maxQueues = 100;
/** Most events that one transaction gives up, those of a batch aside. */
const maxEvents = 5000;

/** Gives up a bounded part of what has waited for too long; resolves with nothing when there is no more. */
export async function giveUpStep(
  database: DestinationDatabase,
  limits: GiveUpLimits,
): Promise<readonly GivenUp[]> {
  const { rows } = await sql<{ destination_id: string }>`
    SELECT lane.destination_id FROM lane
    CROSS JOIN LATERAL (
      SELECT queued_at FROM pending WHERE pending.destination_id = lane.destination_id
        AND (batch_through IS NULL OR position >= batch_through) ORDER BY position LIMIT 1
    ) AS oldest
    WHERE ${isFree} AND queued_at < ${horizon(limits)} LIMIT ${maxQueues}`.execute(database);
  const givenUp: GivenUp[] = [];
  for (const { destination_id: destinationId } of rows) {
    const eventCount = await database
      .transaction()
      .execute((transaction) => giveUpQueue(transaction, destinationId, limits));
    if (eventCount > 0) givenUp.push({ destinationId, eventCount });
  }
  return givenUp;
}

const isFree = sql<boolean>`(lease_id IS NULL OR due_at <= now())`; // 2.

function horizon({ giveUpAfterMs }: GiveUpLimits) {
  return sql<Date>`now() - make_interval(secs => ${giveUpAfterMs / 1000})`;
}

interface QueueState {
  readonly batch_id: string | null;
  readonly batch_through: bigint | null;
  readonly attempts: number;
  readonly last_failure: string;
}

async function giveUpQueue(
  transaction: DestinationTransaction,
  destinationId: string,
  limits: GiveUpLimits,
): Promise<number> {
  const { rows } = await sql<QueueState>`
    SELECT batch_id, batch_through, attempts, last_failure FROM lane
    WHERE destination_id = ${destinationId} AND ${isFree} FOR NO KEY UPDATE SKIP LOCKED`.execute(transaction);
  const [queue] = rows;
  if (queue === undefined) return 0;
  const last = await lastTooOld(transaction, destinationId, queue, limits);
  if (last === undefined) return 0;
  const { numAffectedRows = 0n } = await sql`DELETE FROM pending
    WHERE destination_id = ${destinationId} AND position <= ${last}`.execute(transaction);
  const eventCount = Number(numAffectedRows);
  await logDead(transaction, { destinationId, queue, eventCount, limits }); // 3.
  return eventCount;
}

/** Up to where a queue's events are given up; undefined when none are. */
async function lastTooOld(
  transaction: DestinationTransaction,
  destinationId: string,
  { batch_through }: QueueState,
  limits: GiveUpLimits,
): Promise<bigint | undefined> {
  const tooOld = sql<boolean>`destination_id = ${destinationId} AND queued_at < ${horizon(limits)}`;
  const { rows } =
    batch_through === null // 1.
      ? await sql<{ last: bigint | null }>`SELECT max(position) AS last FROM (
          SELECT position FROM pending WHERE ${tooOld} ORDER BY position LIMIT ${maxEvents}) AS part`.execute(
          transaction,
        )
      : await sql<{ last: bigint }>`
          SELECT position AS last FROM pending WHERE ${tooOld} AND position = ${batch_through}`.execute(
          transaction,
        );
  return rows[0]?.last ?? undefined;
}

interface Death extends GivenUp {
  readonly queue: QueueState;
  readonly limits: GiveUpLimits;
}

async function logDead(
  transaction: DestinationTransaction,
  { destinationId, queue, eventCount, limits }: Death,
): Promise<void> {
  const { rows } = await sql<{ logged: bigint }>`
    UPDATE lane SET logged = logged + 1, batch_id = NULL, batch_through = NULL, attempts = 0, lease_id = NULL,
      due_at = CASE WHEN EXISTS (SELECT FROM pending WHERE destination_id = ${destinationId}) THEN due_at END
    WHERE destination_id = ${destinationId} RETURNING logged`.execute(transaction);
  const sequence = rows[0]?.logged ?? 0n;
  await transaction
    .insertInto("delivery")
    .values({
      destination_id: destinationId,
      sequence,
      batch_id: queue.batch_id ?? randomUUID(),
      status: "dead",
      attempt: queue.attempts,
      event_count: eventCount,
      response_status: 0,
      latency_ms: 0,
      cause: queue.last_failure,
    })
    .execute();
  await transaction
    .deleteFrom("delivery")
    .where("destination_id", "=", destinationId)
    .where("sequence", "<=", sequence - BigInt(limits.keptDeliveries))
    .execute();
}
