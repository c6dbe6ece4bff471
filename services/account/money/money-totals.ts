import { sql } from "kysely";
import type { AccountDatabase } from "../store.ts";

/** What this process has counted since it started; amounts in nano-USD. */
export interface MoneyCounters {
  /** What requests cost beyond their holds. */
  overRunNanoUsd: bigint;
  /** What requests cost whose holds had been freed as lost before. */
  lateRealNanoUsd: bigint;
  /** Events that no hold was found for: nothing was debited. */
  unknownHolds: number;
  /** Events for holds that were refused or released, which should never be. */
  closedHoldEvents: number;
  /** `lost` events put on the topic from here, repeats included. */
  publishedLost: number;
  /** Settled events put on the topic from here because they were not seen there, repeats included. */
  publishedUnseen: number;
  /** Events that the topic does not take. */
  unpublishable: number;
  /** Holds deleted, their retention being over. */
  prunedHolds: number;
}

/** What this process has counted, and what stands in the database: the same in all replicas. */
export interface MoneyTotals extends Readonly<MoneyCounters> {
  /** Holds of requests that have not ended. */
  readonly openHolds: number;
  /** Those of them that are past their deadline and grace: no process has reported their end. */
  readonly overdueHolds: number;
  /** Settled holds whose event was not consumed from the topic yet. */
  readonly unseenHolds: number;
  /** How long ago the oldest of them was settled, seconds; 0 without one. */
  readonly oldestUnseenS: number;
}

/** Counters that stand at zero. */
export function createMoneyCounters(): MoneyCounters {
  return {
    overRunNanoUsd: 0n,
    lateRealNanoUsd: 0n,
    unknownHolds: 0,
    closedHoldEvents: 0,
    publishedLost: 0,
    publishedUnseen: 0,
    unpublishable: 0,
    prunedHolds: 0,
  };
}

/** The counters as they stand, and the holds that the database has something to publish for. */
export async function readMoneyTotals(
  database: AccountDatabase,
  counters: MoneyCounters,
): Promise<MoneyTotals> {
  const { open, overdue, unseen, oldest } = await database
    .selectFrom("hold")
    .select([
      sql<bigint>`count(*) FILTER (WHERE state = 'open')`.as("open"),
      // A hold is published as lost from its deadline and grace on, and its next time is behind that.
      sql<bigint>`count(*) FILTER (WHERE state = 'open' AND (publish_count > 0 OR publish_due_at <= now()))`.as(
        "overdue",
      ),
      sql<bigint>`count(*) FILTER (WHERE state = 'settled')`.as("unseen"),
      sql<
        number | null
      >`extract(epoch FROM now() - min(closed_at) FILTER (WHERE state = 'settled'))::float8`.as("oldest"),
    ])
    .where("publish_due_at", "is not", null)
    .executeTakeFirstOrThrow();
  return {
    ...counters,
    openHolds: Number(open),
    overdueHolds: Number(overdue),
    unseenHolds: Number(unseen),
    oldestUnseenS: Math.max(0, oldest ?? 0),
  };
}
