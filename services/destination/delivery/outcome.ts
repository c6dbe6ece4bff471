/**
 * Owns what becomes of a batch that was sent. Times are the database's.
 *
 * 1. Only the holder of a queue's lease changes anything: of a report that comes after the lease went to another, or
 *    after the destination was deleted, nothing remains.
 * 2. A batch that was taken is gone, and its queue's count of failures with it. One that was not stays as it is, and its
 *    queue is due again after a pause.
 * 3. Whether more waits in a queue is read after its lock was taken, so that what is queued meanwhile is seen either here
 *    or by who queues it.
 */
import { sql } from "kysely";
import type { DestinationDatabase, DestinationTransaction } from "../store.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";

/** What became of an attempt. */
export interface AttemptReport {
  readonly destinationId: string;
  readonly leaseId: string;
  /** The version of the destination that was used. */
  readonly version: number;
  readonly batchId: string;
  readonly batchThrough: bigint;
  readonly eventCount: number;
  /** From 1. */
  readonly attempt: number;
  readonly isTaken: boolean;
  /** Whether more may wait than the batch could hold. */
  readonly isFull: boolean;
  /** Whether the receiver found the batch too large, so that it is to be sent in parts. */
  readonly isTooLarge: boolean;
  /** 0: there was none. */
  readonly status: number;
  readonly latencyMs: number;
  /** Empty when it was taken. */
  readonly cause: string;
  /** How long to wait after a failure, milliseconds. */
  readonly retryMs: number;
}

/** What a report led to. */
export type ReportOutcome =
  /** It is kept. */
  | "kept"
  /** It is kept, and the destination is paused now. */
  | "paused"
  /** The queue is another's by now, or gone. */
  | "overtaken";

interface ReportOptions {
  readonly database: DestinationDatabase;
  readonly limits: DeliveryLimits;
}

/** Keeps the reports of one process, all or none, and says in their order what they led to. */
export async function keepReports(
  { database, limits }: ReportOptions,
  reports: readonly AttemptReport[],
): Promise<readonly ReportOutcome[]> {
  return database.transaction().execute(async (transaction) => {
    const held = await lockHeld(transaction, reports); // 1., 3.
    const kept = reports.filter(({ destinationId }) => held.has(destinationId));
    const paused = kept.length === 0 ? new Set() : await advanceQueues(transaction, kept, limits); // 2.
    return reports.map(({ destinationId }) => {
      if (!held.has(destinationId)) return "overtaken";
      return paused.has(destinationId) ? "paused" : "kept";
    });
  });
}

async function lockHeld(
  transaction: DestinationTransaction,
  reports: readonly AttemptReport[],
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ destination_id: string }>`
    SELECT lane.destination_id FROM lane
    JOIN unnest(${reports.map(({ destinationId }) => destinationId)}::uuid[],
      ${reports.map(({ leaseId }) => leaseId)}::uuid[]) AS report (destination_id, lease_id)
      ON report.destination_id = lane.destination_id AND report.lease_id = lane.lease_id
    ORDER BY lane.destination_id FOR NO KEY UPDATE OF lane`.execute(transaction);
  return new Set(rows.map(({ destination_id }) => destination_id));
}

/** Deletes what was taken, moves the queues and writes the log, in one statement; returns which are paused now. */
async function advanceQueues(
  transaction: DestinationTransaction,
  reports: readonly AttemptReport[],
  { pauseAfterMs, pauseAfterFailures, keptDeliveries, slowAfterMs }: DeliveryLimits,
): Promise<ReadonlySet<string>> {
  const pauseAfter = sql`make_interval(secs => ${pauseAfterMs / 1000})`;
  const { rows } = await sql<{ destination_id: string }>`
    WITH report AS (SELECT * FROM ${unnested(reports)}),
    taken AS (
      DELETE FROM pending USING report WHERE is_taken AND pending.destination_id = report.destination_id
        AND position <= through
    ),
    moved AS (
      UPDATE lane SET
        lease_id = NULL, logged = logged + 1, last_failure = report.cause,
        batch_id = CASE WHEN NOT is_taken AND NOT is_too_large THEN lane.batch_id END,
        batch_through = CASE WHEN NOT is_taken AND NOT is_too_large THEN batch_through END,
        attempts = CASE WHEN NOT is_taken AND NOT is_too_large THEN attempts + 1 ELSE 0 END,
        failures = CASE WHEN is_taken THEN 0 ELSE failures + 1 END,
        is_slow = report.latency_ms > ${slowAfterMs},
        failing_since = CASE WHEN NOT is_taken THEN coalesce(failing_since, now()) END,
        max_events = CASE WHEN is_too_large THEN greatest(1, event_count / 2) ELSE max_events END,
        paused_at = CASE WHEN NOT is_taken AND failures + 1 >= ${pauseAfterFailures}
          AND coalesce(failing_since, now()) <= now() - ${pauseAfter} THEN now() ELSE paused_at END,
        due_at = CASE
          WHEN NOT is_taken AND destination.version = report.version
            THEN now() + make_interval(secs => retry_ms / 1000.0)
          WHEN NOT is_taken THEN now()
          WHEN NOT EXISTS (SELECT FROM pending WHERE pending.destination_id = lane.destination_id
            AND position > through) THEN NULL
          WHEN is_full THEN now()
          ELSE greatest(now(), not_before) END
      FROM report JOIN destination ON destination.id = report.destination_id
      WHERE lane.destination_id = report.destination_id
      RETURNING lane.destination_id, lane.paused_at, lane.logged
    ),
    written AS (
      INSERT INTO delivery (destination_id, sequence, batch_id, status, attempt, event_count, response_status,
        latency_ms, cause)
      SELECT destination_id, logged, batch_id, CASE WHEN is_taken THEN 'delivered' ELSE 'retrying' END, attempt,
        event_count, status, latency_ms, cause
      FROM moved JOIN report USING (destination_id)
    ),
    evicted AS (
      DELETE FROM delivery USING moved WHERE delivery.destination_id = moved.destination_id
        AND sequence <= logged - ${keptDeliveries}
    )
    SELECT destination_id FROM moved WHERE paused_at IS NOT NULL`.execute(transaction);
  return new Set(rows.map(({ destination_id }) => destination_id));
}

function unnested(reports: readonly AttemptReport[]) {
  const column = <K extends keyof AttemptReport>(name: K) => reports.map((report) => report[name]);
  return sql`unnest(${column("destinationId")}::uuid[], ${column("version")}::int[], ${column("batchId")}::uuid[],
    ${column("batchThrough")}::bigint[], ${column("isTaken")}::boolean[], ${column("isFull")}::boolean[],
    ${column("isTooLarge")}::boolean[], ${column("attempt")}::int[], ${column("eventCount")}::int[],
    ${column("status")}::smallint[], ${column("latencyMs")}::int[], ${column("cause")}::text[],
    ${column("retryMs")}::float[])
    AS part (destination_id, version, batch_id, through, is_taken, is_full, is_too_large, attempt, event_count,
      status, latency_ms, cause, retry_ms)`;
}
