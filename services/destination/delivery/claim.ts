/**
 * Owns the claims on destinations that are due. Times are the database's.
 *
 * 1. A queue has at most one holder: who claims it gives it a new lease and makes it due when the lease runs out. A
 *    holder that dies loses it then; one that comes late reports in vain (outcome.ts).
 * 2. A batch is all that waits in a queue up to a position. It is formed under the queue's lock and keeps its id and its
 *    events until it was taken or given up, whoever sends it.
 * 3. Queues that others hold a lock on are passed over, never waited for.
 */
import { fromBinary } from "@bufbuild/protobuf";
import { sql } from "kysely";
import {
  type GenerationEvent,
  GenerationEventSchema,
} from "../../../gen/media/event/v1/generation_event_pb.ts";
import { endedAtMs } from "../../../lib/events/event-message.ts";
import type { DestinationDatabase, DestinationTransaction } from "../store.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";
import { type DisclosureMask, type DisclosureSettings, disclosureMaskOf, redact } from "./redact.ts";

/** A destination that was claimed, with the batch to send. */
export interface ClaimedBatch
  extends Omit<ClaimedQueue, keyof DisclosureSettings | "max_events" | "batch_id" | "batch_through"> {
  readonly batch_id: string;
  readonly batch_through: bigint;
  /** In the order of their ends, redacted. */
  readonly events: readonly GenerationEvent[];
  /** What of them is disclosed. */
  readonly disclosed: DisclosureMask;
  /** Whether it has about as many events, or bytes, as a batch may have. */
  readonly isFull: boolean;
}

interface ClaimedQueue extends DisclosureSettings {
  readonly destination_id: string;
  readonly lease_id: string;
  readonly account_id: string;
  readonly type: string;
  readonly version: number;
  readonly sealed: Buffer;
  readonly batch_id: string | null;
  readonly batch_through: bigint | null;
  readonly attempts: number;
  readonly failures: number;
  readonly is_slow: boolean;
  readonly max_events: number | null;
}

interface ClaimOptions {
  readonly database: DestinationDatabase;
  readonly limits: DeliveryLimits;
  /** Most destinations whose last delivery worked at once. */
  readonly healthy: number;
  /** Most of the others. */
  readonly failing: number;
  maxBatchEvents(type: string): number;
}

/** What was claimed. */
export interface Claim {
  readonly batches: readonly ClaimedBatch[];
  /**
   * When something is due next that there is still room for, milliseconds from now, negative when it is already;
   * undefined when there is no such thing.
   */
  readonly nextDueMs: number | undefined;
}

/** Whether a destination shares the room of those that fail or are slow. */
export function isFailing({ failures, is_slow }: Pick<ClaimedBatch, "failures" | "is_slow">): boolean {
  return failures > 0 || is_slow;
}

/** Claims destinations that are due, longest waiting first, each with its batch. */
export async function claimBatches(options: ClaimOptions): Promise<Claim> {
  return options.database.transaction().execute(async (transaction) => {
    const queues = await claimQueues(transaction, options);
    const batches = queues.length === 0 ? [] : await formBatches(transaction, queues, options);
    return { batches, nextDueMs: await readNextDueMs(transaction, queues, options) };
  });
}

async function claimQueues(
  transaction: DestinationTransaction,
  { limits, healthy, failing }: ClaimOptions,
): Promise<readonly ClaimedQueue[]> {
  // 3.
  const due = (fails: boolean, limit: number) => sql`
    SELECT destination_id FROM lane
    WHERE enabled AND paused_at IS NULL AND due_at <= now() AND (failures > 0 OR is_slow) = ${fails}
    ORDER BY due_at LIMIT ${limit} FOR UPDATE SKIP LOCKED`;
  // 1.
  const { rows } = await sql<ClaimedQueue>`
    WITH healthy AS (${due(false, healthy)}), failing AS (${due(true, failing)}),
      due AS (SELECT destination_id FROM healthy UNION ALL SELECT destination_id FROM failing)
    UPDATE lane SET lease_id = gen_random_uuid(), due_at = now() + make_interval(secs => ${limits.leaseMs / 1000}),
      not_before = now() + make_interval(secs => ${limits.batchIntervalMs / 1000})
    FROM due JOIN destination ON destination.id = due.destination_id
    WHERE lane.destination_id = due.destination_id
    RETURNING lane.destination_id, lease_id, lane.account_id, type, version, sealed, privacy_mode, tells_cost,
      tells_identity, tells_request_context, batch_id, batch_through, attempts, failures, is_slow, max_events`.execute(
    transaction,
  );
  return rows;
}

async function readNextDueMs(
  transaction: DestinationTransaction,
  claimed: readonly ClaimedQueue[],
  { healthy, failing }: ClaimOptions,
): Promise<number | undefined> {
  const failingClaimed = claimed.filter(isFailing).length;
  const hasRoom = [
    ...(claimed.length - failingClaimed < healthy ? [false] : []),
    ...(failingClaimed < failing ? [true] : []),
  ];
  const { rows } = await sql<{ due_ms: number | null }>`
    SELECT (extract(epoch FROM min(due_at) - now()) * 1000)::float AS due_ms FROM lane
    WHERE enabled AND paused_at IS NULL AND (failures > 0 OR is_slow) = ANY(${hasRoom}::boolean[])`.execute(
    transaction,
  );
  return rows[0]?.due_ms ?? undefined;
}

interface WaitingEvent {
  readonly destination_id: string;
  readonly disclosed: DisclosureMask;
  readonly event: Buffer;
  /** Of a batch that is new. */
  readonly batch_id: string | null;
  readonly batch_through: bigint | null;
}

async function formBatches(
  transaction: DestinationTransaction,
  queues: readonly ClaimedQueue[],
  { limits, maxBatchEvents }: ClaimOptions,
): Promise<readonly ClaimedBatch[]> {
  const mostEvents = queues.map(({ type, max_events }) =>
    Math.min(maxBatchEvents(type), max_events ?? Infinity),
  );
  // 2.
  const rows = await pickEvents(transaction, queues, mostEvents, limits);
  const waiting = Map.groupBy(rows, ({ destination_id }) => destination_id);
  const batches = queues.flatMap((queue, index) => {
    const events = waiting.get(queue.destination_id) ?? [];
    const bytes = events.reduce((sum, { event }) => sum + event.length, 0);
    const isFull = events.length >= (mostEvents[index] ?? 1) || bytes > limits.maxBatchBytes / 2;
    return toBatch(queue, events, isFull);
  });
  const formed = new Set(batches.map(({ destination_id }) => destination_id));
  const idle = queues.map(({ destination_id }) => destination_id).filter((id) => !formed.has(id));
  if (idle.length > 0) await giveBack(transaction, idle);
  return batches;
}

/** Reads the batches, and forms those that are new: as many events as fit and disclose the same fields. */
async function pickEvents(
  transaction: DestinationTransaction,
  queues: readonly ClaimedQueue[],
  mostEvents: readonly number[],
  { maxBatchBytes }: DeliveryLimits,
): Promise<readonly WaitingEvent[]> {
  const { rows } = await sql<WaitingEvent>`
    WITH picked AS (
      SELECT wanted.destination_id, through, first.position, first.tells, first.event
      FROM unnest(${queues.map(({ destination_id }) => destination_id)}::uuid[],
          ${queues.map(({ batch_through }) => batch_through)}::bigint[], ${mostEvents}::int[])
        AS wanted (destination_id, through, most)
      CROSS JOIN LATERAL (
        SELECT position, tells, event, row_number() OVER line AS number,
          sum(octet_length(event)) OVER line AS bytes, bool_and(tells = first_tells) OVER line AS is_same
        FROM (
          SELECT position, tells, event, first_value(tells) OVER (ORDER BY position) AS first_tells
          FROM pending
          WHERE pending.destination_id = wanted.destination_id AND (through IS NULL OR position <= through)
          ORDER BY position LIMIT CASE WHEN through IS NULL THEN most END
        ) AS waiting
        WINDOW line AS (ORDER BY position)
      ) AS first
      WHERE through IS NOT NULL OR number = 1 OR (bytes <= ${maxBatchBytes} AND is_same)
    ),
    formed AS (
      UPDATE lane SET batch_id = gen_random_uuid(), batch_through = last.position
      FROM (
        SELECT destination_id, max(position) AS position FROM picked WHERE through IS NULL GROUP BY destination_id
      ) AS last
      WHERE lane.destination_id = last.destination_id
      RETURNING lane.destination_id, lane.batch_id, lane.batch_through
    )
    SELECT picked.destination_id, tells AS disclosed, event, batch_id, batch_through
    FROM picked LEFT JOIN formed ON formed.destination_id = picked.destination_id
    ORDER BY picked.destination_id, position`.execute(transaction);
  return rows;
}

/** A queue's batch; none when nothing waits. */
function toBatch(queue: ClaimedQueue, waiting: readonly WaitingEvent[], isFull: boolean): ClaimedBatch[] {
  const { batch_id, batch_through, max_events, ...rest } = queue;
  const { privacy_mode, tells_cost, tells_identity, tells_request_context, ...claimed } = rest;
  const [first] = waiting;
  const id = batch_id ?? first?.batch_id;
  const through = batch_through ?? first?.batch_through;
  if (first === undefined || id == null || through == null) return [];
  const disclosed = first.disclosed & disclosureMaskOf(rest);
  const events = waiting.map(({ event }) => {
    const queued = fromBinary(GenerationEventSchema, event);
    return disclosed === first.disclosed ? queued : redact(queued, disclosed);
  });
  events.sort((a, b) => endedAtMs(a) - endedAtMs(b));
  return [{ ...claimed, batch_id: id, batch_through: through, events, disclosed, isFull }];
}

/** Releases queues in which nothing waits, or no more of their batch. */
async function giveBack(transaction: DestinationTransaction, ids: readonly string[]): Promise<void> {
  await sql`UPDATE lane SET lease_id = NULL, batch_id = NULL, batch_through = NULL, due_at =
      CASE WHEN EXISTS (SELECT FROM pending WHERE pending.destination_id = lane.destination_id) THEN now() END
    WHERE destination_id = ANY(${ids}::uuid[])`.execute(transaction);
}
