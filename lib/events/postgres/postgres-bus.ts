import { randomUUID } from "node:crypto";
import { connectDatabase } from "../../database/connect.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import type { Bus, TopicState } from "../bus.ts";
import { withLimit } from "../with-limit.ts";
import { PostgresAppender } from "./postgres-appender.ts";
import { busMigrations } from "./postgres-bus-migrations.ts";
import type { BusTables } from "./postgres-bus-tables.ts";
import { PostgresGroupMember } from "./postgres-group-member.ts";
import { deleteOldMessages } from "./postgres-retention.ts";
import { ensureTopic, seekGroup, topicRetentionMs } from "./postgres-topics.ts";
import { PostgresWakeups } from "./postgres-wakeups.ts";

/** How to open a bus on PostgreSQL. */
export interface PostgresBusOptions {
  /** The database in whose schema `bus` the bus lives; see `busMigrations`. */
  readonly url: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** How long after its last sign of life a consumer is taken for dead; 10 s unless given, as on Kafka. */
  readonly leaseMs?: number;
  /** How often old messages are looked for; each minute unless given. */
  readonly retentionIntervalMs?: number;
}

const defaultLeaseMs = 10_000;
const defaultRetentionIntervalMs = 60_000;
const closeTimeoutMs = 10_000;

/**
 * A bus on PostgreSQL, for a deployment without Kafka. Nothing is connected before it is used; until its schema is
 * there it counts as away.
 */
export function createPostgresBus(options: PostgresBusOptions): Bus {
  const { url, log, clock = systemClock } = options;
  const database = connectDatabase<BusTables>({ url, schema: busMigrations.schema, log });
  const wakeups = new PostgresWakeups({ url, database, log });
  const appender = new PostgresAppender({ database, wakeups, log });
  const closing = new AbortController();
  let deleting: Promise<void> | undefined;
  const use = () => {
    const intervalMs = options.retentionIntervalMs ?? defaultRetentionIntervalMs;
    deleting ??= deleteOldMessages({ database, log, intervalMs, signal: closing.signal });
  };
  return {
    system: "postgresql",
    send(topic, messages, signal) {
      use();
      return appender.send(topic, messages, signal);
    },
    consume(consume) {
      use();
      const leaseMs = options.leaseMs ?? defaultLeaseMs;
      return new PostgresGroupMember({
        database,
        wakeups,
        log,
        clock,
        consume,
        memberId: randomUUID(),
        leaseMs,
      });
    },
    seek: (seek, signal) => withLimit(seekGroup(database, seek), { signal }),
    async ensureTopics(topics, signal) {
      const states: TopicState[] = [];
      for (const topic of topics) states.push(await withLimit(ensureTopic(database, topic), { signal }));
      return states;
    },
    retentionMs: (topic, signal) => withLimit(topicRetentionMs(database, topic), { signal }),
    async close() {
      closing.abort();
      await appender.close();
      await Promise.all([wakeups.close(), deleting]);
      // A connection that hangs would never be given back.
      await withLimit(database.destroy(), { timeoutMs: closeTimeoutMs }).catch((thrown: unknown) => {
        log.warn({ err: thrown }, "the bus's connections could not be closed");
      });
    },
  };
}
