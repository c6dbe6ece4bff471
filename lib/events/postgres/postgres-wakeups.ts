import { sql } from "kysely";
import { listenForNotifications, type Notifications } from "../../database/notifications.ts";
import type { Log } from "../../runtime/log.ts";
import type { BusDatabase } from "./postgres-bus-tables.ts";

/** How far a partition reaches: the number that its next message will get. */
export interface PartitionEnd {
  readonly partitionId: number;
  readonly nextOffset: bigint;
}

/** What a member of a group wants to hear. */
export interface WakeupListener {
  appended(end: PartitionEnd): void;
  /** Somebody joined or left the group, or let go of a partition. */
  groupChanged(groupId: number): void;
  /** News may have been missed. */
  mayHaveMissed(): void;
}

const channel = "media_gateway_bus";
/** So many fit into the 8,000 bytes that PostgreSQL allows. */
const maxEndsOfNotice = 200;

/**
 * News between the members of all processes: those of this process hear them at once, the others by NOTIFY, which is
 * sent behind the append's transaction, since within it NOTIFY would let the appends of a whole database commit only
 * one by one. News may get lost; whoever needs them looks for itself now and then.
 */
export class PostgresWakeups {
  readonly #url: string;
  readonly #database: BusDatabase;
  readonly #log: Log;
  readonly #listeners = new Set<WakeupListener>();
  readonly #ends = new Map<number, bigint>();
  readonly #groups = new Set<number>();
  #notifications: Notifications | undefined;
  #telling: Promise<void> | undefined;

  constructor(options: { url: string; database: BusDatabase; log: Log }) {
    this.#url = options.url;
    this.#database = options.database;
    this.#log = options.log;
  }

  /** Begins to hear; returns how to end it. */
  listen(listener: WakeupListener): () => void {
    this.#listeners.add(listener);
    this.#notifications ??= listenForNotifications({
      url: this.#url,
      channel,
      log: this.#log,
      onNotification: (payload) => this.#hear(payload),
      onListening: () => {
        for (const { mayHaveMissed } of this.#listeners) mayHaveMissed();
      },
    });
    return () => this.#listeners.delete(listener);
  }

  /** Tells that messages were appended. */
  tellAppended(ends: readonly PartitionEnd[]): void {
    for (const end of ends) {
      this.#appended(end);
      this.#ends.set(end.partitionId, end.nextOffset);
    }
    this.#tell();
  }

  /** Tells that the members of a group or what they hold has changed. */
  tellGroupChanged(groupId: number): void {
    for (const { groupChanged } of this.#listeners) groupChanged(groupId);
    this.#groups.add(groupId);
    this.#tell();
  }

  async close(): Promise<void> {
    this.#listeners.clear();
    await Promise.all([this.#telling, this.#notifications?.close()]);
  }

  #appended(end: PartitionEnd): void {
    for (const { appended } of this.#listeners) appended(end);
  }

  #tell(): void {
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = undefined;
    });
  }

  async #tellAll(): Promise<void> {
    while (this.#ends.size > 0 || this.#groups.size > 0) {
      const ends = [...this.#ends].slice(0, maxEndsOfNotice);
      const [group] = this.#groups;
      for (const [partitionId] of ends) this.#ends.delete(partitionId);
      const words = ends.map(([partitionId, nextOffset]) => `${partitionId}:${nextOffset}`);
      if (group !== undefined) {
        this.#groups.delete(group);
        words.push(`group:${group}`);
      }
      try {
        await sql`SELECT pg_notify(${channel}, ${words.join(" ")})`.execute(this.#database);
      } catch (thrown) {
        this.#log.debug({ err: thrown }, "bus news got lost");
      }
    }
  }

  #hear(payload: string): void {
    for (const word of payload.split(" ")) {
      const [, what = "", number = ""] = /^(\d+|group):(\d+)$/.exec(word) ?? [];
      if (number === "") continue;
      if (what !== "group") this.#appended({ partitionId: Number(what), nextOffset: BigInt(number) });
      else for (const { groupChanged } of this.#listeners) groupChanged(Number(number));
    }
  }
}
