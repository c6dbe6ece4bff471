import { sql } from "kysely";
import { type Bus, PublishError } from "../../../lib/events/bus.ts";
import { sendAll } from "../../../lib/events/send-all.ts";
import { generationEventsTopic } from "../../../lib/events/topics.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { AccountDatabase } from "../store.ts";
import type { MoneyCounters } from "./money-totals.ts";

/*
 * Publishes what no process has published, as far as the consumer of events knows: the draft of a `lost` event for
 * a hold that is open beyond its deadline and grace, and the event of a settled hold that was not consumed yet.
 * 1. It publishes and nothing else: what was published frees or marks a hold when it is consumed, in its order
 *    behind all that stood on the topic before.
 * 2. A row is claimed, its next time set and the claim committed before its event is sent; so any number of replicas
 *    may do this, and one that dies costs a delay.
 * 3. Intervals double until the row has nothing to publish any more; copies are harmless. Only after a sending that
 *    failed, which says nothing about the hold, a row is due again soon.
 */

/** Times in milliseconds. */
export interface PublishDueOptions {
  readonly database: AccountDatabase;
  readonly bus: Pick<Bus, "send">;
  readonly counters: MoneyCounters;
  readonly log: Log;
  /** First interval between two sendings for a hold that stays open. */
  readonly holdGraceMs: number;
  /** The same for a settled hold that stays unseen. */
  readonly unseenGraceMs: number;
  /** How many rows are claimed at once; 256 unless given. */
  readonly batchSize?: number;
  /** How long sending them may take; 5 s unless given. */
  readonly sendTimeoutMs?: number;
}

interface DueRow {
  readonly id: string;
  readonly account_id: string;
  readonly state: "open" | "settled";
  readonly event: Buffer;
}

const defaultBatchSize = 256;
const defaultSendTimeoutMs = 5000;
/** Longest interval, unless the first is longer. */
const maxIntervalMs = 3_600_000;
const retryMs = 5000;

/**
 * Publishes a batch of what is due and says whether there may be more. Rejects when the bus is away, having put the
 * rows back, and when the database is.
 */
export async function publishDue(options: PublishDueOptions, signal: AbortSignal): Promise<boolean> {
  const { bus, log, batchSize = defaultBatchSize, sendTimeoutMs = defaultSendTimeoutMs } = options;
  const rows = await claim(options, batchSize); // 2.
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(sendTimeoutMs)]);
  const messages = rows.map(({ account_id, event }) => ({ key: account_id, value: event }));
  // 1.
  const outcomes = await sendAll({ bus, topic: generationEventsTopic, log }, messages, timeout);
  const unsent = rows.filter((row, index) => !isDone(options, row, outcomes[index]));
  if (unsent.length > 0) {
    await putBack(options, unsent); // 3.
    throw outcomes[rows.indexOf(unsent[0] as DueRow)];
  }
  return rows.length === batchSize;
}

/** Counts what was published, and what never will be; false for what was given up. */
function isDone({ counters, log }: PublishDueOptions, { id, state }: DueRow, failure: unknown): boolean {
  if (failure === undefined) counters[state === "open" ? "publishedLost" : "publishedUnseen"] += 1;
  else if (failure instanceof PublishError) {
    counters.unpublishable += 1;
    log.error({ err: failure, generation_id: id }, "the topic takes no event of this hold");
  } else return false;
  return true;
}

async function claim(options: PublishDueOptions, batchSize: number): Promise<readonly DueRow[]> {
  const { database, holdGraceMs, unseenGraceMs } = options;
  // 3.
  const { rows } = await sql<DueRow>`
    WITH due AS (
      SELECT id, CASE state WHEN 'open' THEN ${holdGraceMs}::float ELSE ${unseenGraceMs}::float END AS first_ms
      FROM hold WHERE publish_due_at <= now() ORDER BY publish_due_at LIMIT ${batchSize} FOR UPDATE SKIP LOCKED
    )
    UPDATE hold SET publish_count = publish_count + 1, publish_due_at = now() + make_interval(
      secs => least(first_ms * 2 ^ least(publish_count, 30), greatest(first_ms, ${maxIntervalMs})) / 1000)
    FROM due WHERE hold.id = due.id
    RETURNING hold.id, account_id, state, event`.execute(database);
  return rows;
}

/** Rows that were closed meanwhile, or are due for something new, stay as they are. */
async function putBack({ database }: PublishDueOptions, rows: readonly DueRow[]): Promise<void> {
  await database
    .updateTable("hold")
    .set({
      publish_count: sql<number>`publish_count - 1`,
      publish_due_at: sql<Date>`now() + make_interval(secs => ${retryMs / 1000})`,
    })
    .where(
      "id",
      "in",
      rows.map(({ id }) => id),
    )
    .where("publish_due_at", "is not", null)
    .where("publish_count", ">", 0)
    .execute();
}
