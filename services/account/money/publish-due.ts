import { sql } from "kysely";
import { type Bus, PublishError } from "../../../lib/events/bus.ts";
import { generationEventsTopic } from "../../../lib/events/topics.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import type { AccountDatabase } from "../store.ts";
import type { MoneyCounters } from "./money-figures.ts";

/*
 * Publishes what no process has published, as far as the consumer of events can tell: the draft of a `lost` event for
 * a hold that is open beyond its deadline and grace, and the event of a settled hold that was not met on the topic.
 * 1. It publishes and nothing else: what was published frees or marks a hold when the consumer meets it, in its order
 *    behind all that stood on the topic before.
 * 2. A row is claimed, its next time set and the claim committed before its event is sent; so any number of replicas
 *    may do this, and one that dies costs a delay.
 * 3. Intervals double until the row has nothing to publish any more; copies are harmless. Only after a sending that
 *    failed, which tells nothing about the hold, a row is due again soon.
 */

/** What publishing works with. */
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
/** What a broker takes at once by default is 1 MiB. */
const maxSendBytes = 512 * 1024;
/** Longest interval, unless the first is longer. */
const maxIntervalMs = 3_600_000;
const retryMs = 5000;

/**
 * Publishes a batch of what is due and says whether there may be more. Rejects when the bus is away, having put the
 * rows back, and when the database is.
 */
export async function publishDue(options: PublishDueOptions, signal: AbortSignal): Promise<boolean> {
  const { batchSize = defaultBatchSize, sendTimeoutMs = defaultSendTimeoutMs } = options;
  const rows = await claim(options, batchSize);
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(sendTimeoutMs)]);
  try {
    for (const group of groupsOf(rows)) await send(options, group, timeout);
  } catch (thrown) {
    await putBack(options, rows);
    throw thrown;
  }
  return rows.length === batchSize;
}

async function claim(options: PublishDueOptions, batchSize: number): Promise<readonly DueRow[]> {
  const { database, holdGraceMs, unseenGraceMs } = options;
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

/** Rows that one message to a broker can hold. */
function groupsOf(rows: readonly DueRow[]): DueRow[][] {
  const groups: DueRow[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    bytes += row.event.length;
    if (bytes > maxSendBytes) {
      groups.push([]);
      bytes = row.event.length;
    }
    groups.at(-1)?.push(row);
  }
  return groups;
}

/** Sends events; one that the topic will never take is found by halving, told and left to its next time. */
async function send(options: PublishDueOptions, rows: readonly DueRow[], signal: AbortSignal): Promise<void> {
  const { bus, counters, log } = options;
  const messages = rows.map(({ account_id, event }) => ({ key: account_id, value: event }));
  try {
    await bus.send(generationEventsTopic, messages, signal);
    for (const { state } of rows) counters[state === "open" ? "publishedLost" : "publishedUnseen"] += 1;
  } catch (thrown) {
    if (!(thrown instanceof PublishError)) throw thrown;
    if (rows.length === 1) {
      counters.unpublishable += 1;
      log.error({ err: thrown, generation_id: rows[0]?.id }, "the topic takes no event of this hold");
      return;
    }
    const half = Math.ceil(rows.length / 2);
    await send(options, rows.slice(0, half), signal);
    await send(options, rows.slice(half), signal);
  }
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
