import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import type { Log } from "../../../lib/runtime/log.ts";
import { resealDestinations } from "../settings/reseal.ts";
import type { SettingsKeeper } from "../settings/settings-keeper.ts";
import type { DestinationDatabase } from "../store.ts";
import type { DeliveryLimits } from "./delivery-limits.ts";
import { giveUpStep } from "./give-up.ts";

/** What is kept in order, and how long things are kept. */
export interface HousekeepingOptions {
  readonly database: DestinationDatabase;
  readonly keeper: SettingsKeeper;
  readonly limits: DeliveryLimits;
  /** How many days an event stays known after its end. */
  readonly retentionDays: number;
  readonly log: Log;
}

/** Work that is done again and again beside everything else. */
export interface Housekeeping {
  /** Events that were given up. */
  readonly givenUpEvents: number;
  /** Lets the running step end. */
  stop(): Promise<void>;
}

const stepRows = 1000;
const stepPauseMs = 20;
const dayMs = 86_400_000;
/** In every such round settings are sealed anew, the first included. */
const resealRounds = 60;

/**
 * Gives up what has waited for too long, deletes what deleted destinations left, old entries of the log and events that
 * need not be known any more, and seals settings anew that were sealed with an older key. Any number of replicas may.
 */
export function startHousekeeping(options: HousekeepingOptions): Housekeeping {
  return new RunningHousekeeping(options);
}

class RunningHousekeeping implements Housekeeping {
  givenUpEvents = 0;
  readonly #options: HousekeepingOptions;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(options: HousekeepingOptions) {
    this.#options = options;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { limits, log } = this.#options;
    for (let round = 0; !this.#stopping.signal.aborted; round++) {
      for (const [name, step] of this.#tasks(round)) {
        await this.#repeat(step).catch((thrown: unknown) => {
          if (this.#stopping.signal.aborted) return;
          log.warn({ err: thrown, task: name }, "housekeeping failed and will go on");
        });
      }
      await this.#pause(limits.housekeepingMs);
    }
  }

  /** Each does a bounded part of its work and says whether there may be more. */
  #tasks(round: number): readonly (readonly [string, () => Promise<boolean>])[] {
    const { database, keeper, limits, retentionDays } = this.#options;
    const { signal } = this.#stopping;
    const reseal = async () => {
      await resealDestinations(database, keeper, signal);
      return false;
    };
    return [
      ["give up", () => this.#giveUp()],
      ["purge", () => purgeStep(database)],
      ["prune deliveries", () => pruneDeliveries(database, limits.keptDeliveriesMs)],
      ["prune events", () => pruneEvents(database, retentionDays * dayMs)],
      // Rarely: it reads all settings, and other keys come with a start.
      ...(round % resealRounds === 0 ? [["reseal", reseal] as const] : []),
    ];
  }

  async #repeat(step: () => Promise<boolean>): Promise<void> {
    while (!this.#stopping.signal.aborted && (await step())) await this.#pause(stepPauseMs);
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => undefined);
  }

  async #giveUp(): Promise<boolean> {
    const { database, limits, log } = this.#options;
    const givenUp = await giveUpStep(database, limits);
    for (const { destinationId, eventCount } of givenUp) {
      this.givenUpEvents += eventCount;
      log.warn({ destination_id: destinationId, events: eventCount }, "events given up");
    }
    return givenUp.length > 0;
  }
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
