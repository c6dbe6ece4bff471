import { sql } from "kysely";
import { isDataFault } from "../../../lib/database/database-errors.ts";
import { EventConsumer } from "../../../lib/events/batch-consumer.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { maxEventAgeMs } from "../../../lib/events/event-age.ts";
import { groups } from "../../../lib/events/topics.ts";
import type { Clock } from "../../../lib/runtime/clock.ts";
import { repeat } from "../../../lib/runtime/repeat.ts";
import { silentTracer, type Tracer } from "../../../lib/runtime/span.ts";
import type { AccountDatabase } from "../store.ts";
import type { MoneyCounters } from "./money-totals.ts";
import { publishDue } from "./publish-due.ts";
import { applyEvents, type SettlementOptions } from "./settlements.ts";

interface MoneyBackgroundOptions extends SettlementOptions {
  readonly bus: Bus;
  readonly clock: Clock;
  readonly holdGraceMs: number;
  readonly retentionDays: number;
  readonly tracer?: Tracer;
}

/** What goes on beside the calls. */
export interface MoneyBackground {
  readonly consumer: EventConsumer;
  /** Resolves once the parts under way have ended. */
  stop(): Promise<void>;
}

/** How long what is due waits before it is looked for: a tenth of the time after which it is due, within bounds. */
const minPublishPauseMs = 1000;
const maxPublishPauseMs = 5000;
const prunePauseMs = 600_000;
/** Each batch is one transaction, which keeps the rows of its accounts locked. */
const maxBatchMessages = 200;

/** Begins to apply events, to publish what is due and to prune old holds. A bus that is away is waited for. */
export function startMoneyBackground(options: MoneyBackgroundOptions): MoneyBackground {
  const { bus, clock, log, retentionDays, tracer = silentTracer } = options;
  const consumer = new EventConsumer({
    bus,
    group: groups.account,
    log,
    clock,
    maxAgeMs: maxEventAgeMs(retentionDays),
    maxBatchMessages,
    tracer,
    apply: (events, _signal, bytesOf) => applyEvents(options, events, bytesOf),
    isPoison: isDataFault,
  });
  const publishing = repeat({
    name: "publish due events",
    run: (signal) => publishDue(options, signal),
    pauseMs: publishPauseMs(options),
    log,
  });
  const pruning = repeat({
    name: "prune old holds",
    run: () => pruneHolds(options),
    pauseMs: prunePauseMs,
    log,
  });
  return {
    consumer,
    async stop() {
      await Promise.all([consumer.stop(), publishing.stop(), pruning.stop()]);
    },
  };
}

function publishPauseMs({ holdGraceMs, unseenGraceMs }: MoneyBackgroundOptions): number {
  const graceMs = Math.min(holdGraceMs, unseenGraceMs);
  return Math.min(Math.max(graceMs / 10, minPublishPauseMs), maxPublishPauseMs);
}

interface PruneHoldsOptions {
  readonly database: AccountDatabase;
  readonly counters: MoneyCounters;
  /** How long usage records are kept; holds are kept for longer. */
  readonly retentionDays: number;
  /** How many rows are deleted at once; 1,000 unless given. */
  readonly batchSize?: number;
}

/** Days that a hold outlives the usage record of its request, and so any event that is still applied. */
const marginDays = 2;
const defaultBatchSize = 1000;

/**
 * Deletes a batch of closed holds whose retention is over and says whether there may be more. An open hold, and a
 * settled one whose event was not consumed from the topic, is never deleted.
 */
export async function pruneHolds(options: PruneHoldsOptions): Promise<boolean> {
  const { database, counters, retentionDays, batchSize = defaultBatchSize } = options;
  const end = sql`now() - make_interval(days => ${retentionDays + marginDays})`;
  const { rows } = await sql<{ pruned: bigint }>`
    WITH deleted AS (
      DELETE FROM hold WHERE id IN (
        SELECT id FROM hold
        WHERE deadline < ${end} AND closed_at < ${end} AND (state IN ('released', 'refused') OR seen)
        ORDER BY deadline LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
      ) RETURNING id
    )
    SELECT count(*) AS pruned FROM deleted`.execute(database);
  const pruned = Number(rows[0]?.pruned ?? 0n);
  counters.prunedHolds += pruned;
  return pruned === batchSize;
}
