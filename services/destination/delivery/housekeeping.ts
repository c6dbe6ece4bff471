import { sql } from "kysely";
import type { Log } from "../../../lib/runtime/log.ts";
import { type Repeating, repeat } from "../../../lib/runtime/repeat.ts";
import { resealDestinations } from "../settings/reseal.ts";
import type { SettingsKeeper } from "../settings/settings-keeper.ts";
import type { DestinationDatabase } from "../store.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";
import { giveUpStep } from "./give-up.ts";

interface HousekeepingOptions {
  readonly database: DestinationDatabase;
  readonly keeper: SettingsKeeper;
  readonly limits: DeliveryLimits;
  /** How many days an event stays known after its end. */
  readonly retentionDays: number;
  readonly log: Log;
}

/** Work that is done again and again beside everything else. */
export interface Housekeeping extends Repeating {
  /** Events that were given up. */
  readonly givenUpEvents: number;
}

const stepRows = 1000;
const stepPauseMs = 20;
const dayMs = 86_400_000;
/** Settings are sealed anew once in so many pauses: it reads all of them, and other keys come with a start. */
const resealPauses = 60;

/**
 * Gives up what has waited for too long, deletes what deleted destinations left, old entries of the log and events that
 * need not be known any more, and seals settings anew that were sealed with an older key. Any number of replicas may.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  const { database, keeper, limits, retentionDays, log } = options;
  let givenUpEvents = 0;
  const giveUp = async () => {
    const givenUp = await giveUpStep(database, limits);
    for (const { destinationId, eventCount } of givenUp) {
      givenUpEvents += eventCount;
      log.warn({ destination_id: destinationId, events: eventCount }, "events given up");
    }
    return givenUp.length > 0;
  };
  const reseal = async (signal: AbortSignal) => {
    await resealDestinations(database, keeper, signal);
    return false;
  };
  const begin = (name: string, run: (signal: AbortSignal) => Promise<boolean>, pauses = 1) =>
    repeat({ name, run, pauseMs: pauses * limits.housekeepingMs, stepPauseMs, log });
  const tasks = [
    begin("give up", giveUp),
    begin("purge", () => purgeStep(database)),
    begin("prune deliveries", () => pruneDeliveries(database, limits.keptDeliveriesMs)),
    begin("prune events", () => pruneEvents(database, retentionDays * dayMs)),
    begin("reseal", reseal, resealPauses),
  ];
  return {
    get givenUpEvents() {
      return givenUpEvents;
    },
    async stop() {
      await Promise.all(tasks.map((task) => task.stop()));
    },
  };
}

/** Deletes a part of what a deleted destination left. */
async function purgeStep(database: DestinationDatabase): Promise<boolean> {
  const row = await database
    .selectFrom("destination")
    .select("id")
    .where("deleted_at", "is not", null)
    .where("purged_at", "is", null)
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return false;
  const { numAffectedRows: events = 0n } = await sql`DELETE FROM pending WHERE (destination_id, position) IN (
    SELECT destination_id, position FROM pending WHERE destination_id = ${row.id} LIMIT ${stepRows})`.execute(
    database,
  );
  if (events > 0n) return true;
  await database.deleteFrom("delivery").where("destination_id", "=", row.id).execute();
  await database
    .updateTable("destination")
    .set({ purged_at: sql<Date>`now()` })
    .where("id", "=", row.id)
    .execute();
  return true;
}

async function pruneDeliveries(database: DestinationDatabase, keptMs: number): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`DELETE FROM delivery WHERE (destination_id, sequence) IN (
    SELECT destination_id, sequence FROM delivery WHERE attempted_at < now() - make_interval(secs => ${keptMs / 1000})
    ORDER BY attempted_at LIMIT ${stepRows} FOR UPDATE SKIP LOCKED)`.execute(database);
  return numAffectedRows === BigInt(stepRows);
}

async function pruneEvents(database: DestinationDatabase, keptMs: number): Promise<boolean> {
  const { numAffectedRows = 0n } = await sql`DELETE FROM known_event WHERE event_id IN (
    SELECT event_id FROM known_event WHERE ended_at < now() - make_interval(secs => ${keptMs / 1000})
    ORDER BY ended_at LIMIT ${stepRows} FOR UPDATE SKIP LOCKED)`.execute(database);
  return numAffectedRows === BigInt(stepRows);
}
