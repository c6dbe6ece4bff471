import { sql } from "kysely";
import type { DestinationDatabase } from "../store.ts";

/** What stands in the database, the same in all replicas. */
export interface DeliveryBacklog {
  /** Destinations that are delivered to. */
  readonly enabledDestinations: number;
  /** Those of them whose last attempt failed, the paused ones left out. */
  readonly failingDestinations: number;
  /** Those of them that are paused after sustained failure. */
  readonly pausedDestinations: number;
  /** Events that wait, counted for each destination, up to a million. */
  readonly pendingEvents: number;
  /** How long the oldest event waits that may be delivered, milliseconds; 0: none does. */
  readonly oldestPendingMs: number;
  /** The same of destinations whose last attempt worked: how far this service itself is behind. */
  readonly oldestHealthyPendingMs: number;
}

const maxCounted = 1_000_000;

/** Reads how much waits, and for how long, in one short statement. Times are the database's. */
export async function readBacklog(database: DestinationDatabase): Promise<DeliveryBacklog> {
  const { rows } = await sql<DeliveryBacklog>`
    WITH line AS (
      SELECT enabled, paused_at IS NOT NULL AS is_paused,
        (paused_at = operator_paused_at) IS NOT TRUE AS is_own, failures > 0 AS is_failing,
        (SELECT queued_at FROM pending WHERE pending.destination_id = lane.destination_id
          ORDER BY position LIMIT 1) AS oldest
      FROM lane
    )
    SELECT count(*) FILTER (WHERE enabled)::float AS "enabledDestinations",
      count(*) FILTER (WHERE enabled AND is_failing AND NOT is_paused)::float AS "failingDestinations",
      count(*) FILTER (WHERE enabled AND is_paused AND is_own)::float AS "pausedDestinations",
      (SELECT count(*) FROM (
        SELECT FROM pending WHERE destination_id IN (SELECT destination_id FROM lane) LIMIT ${maxCounted}
      ) AS counted)::float AS "pendingEvents",
      ${ageOf(sql`enabled AND NOT is_paused`)} AS "oldestPendingMs",
      ${ageOf(sql`enabled AND NOT is_paused AND NOT is_failing`)} AS "oldestHealthyPendingMs"
    FROM line`.execute(database);
  const [backlog] = rows;
  if (backlog === undefined) throw new Error("an aggregate without a row");
  return backlog;
}

function ageOf(condition: ReturnType<typeof sql>) {
  const age = sql`extract(epoch FROM now() - min(oldest) FILTER (WHERE ${condition}))`;
  return sql`coalesce(greatest(0, ${age} * 1000), 0)::float`;
}
