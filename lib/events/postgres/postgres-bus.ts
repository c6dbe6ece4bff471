import { connectDatabase } from "../../database/connect.ts";
import type { Log } from "../../runtime/log.ts";
import { withLimit } from "../../runtime/with-limit.ts";
import type { Bus } from "../bus.ts";
import { busMigrations } from "./postgres-bus-migrations.ts";
import type { BusTables } from "./postgres-bus-tables.ts";
import { PostgresConsumer } from "./postgres-consumer.ts";
import { appendMessages } from "./postgres-log.ts";
import { deleteOldMessages } from "./postgres-retention.ts";
import { PostgresSession } from "./postgres-session.ts";
import { ensureTopic, seekGroup, topicRetentionMs } from "./postgres-topics.ts";

interface PostgresBusOptions {
  /** The database in whose schema `bus` the bus lives; see `busMigrations`. */
  readonly url: string;
  readonly log: Log;
  /** How often is looked for messages of which no word came; each 30 s unless given. */
  readonly lookMs?: number;
  /** How often old messages are looked for; every ten minutes unless given. */
  readonly retentionIntervalMs?: number;
}

const defaultLookMs = 30_000;
const defaultRetentionIntervalMs = 600_000;
/** Longer than the database lets a statement run: what was given up is not under way any more. */
const appendTimeoutMs = 20_000;
const closeTimeoutMs = 10_000;

/**
 * A bus on PostgreSQL, for a deployment of one process, without Kafka: a topic is one log, and a group has one reader.
 * Nothing is connected before it is used; until its schema is there it counts as away.
 */
export function createPostgresBus(options: PostgresBusOptions): Bus {
  const { url, log, lookMs = defaultLookMs } = options;
  const database = connectDatabase<BusTables>({ url, schema: busMigrations.schema, log });
  const session = new PostgresSession({ url, log });
  const closing = new AbortController();
  let deleting: Promise<void> | undefined;
  const use = () => {
    const intervalMs = options.retentionIntervalMs ?? defaultRetentionIntervalMs;
    deleting ??= deleteOldMessages({ database, log, intervalMs, signal: closing.signal });
  };
  return {
    system: "postgresql",
    async send(topic, messages, signal) {
      signal.throwIfAborted();
      closing.signal.throwIfAborted();
      if (messages.length === 0) return;
      use();
      const end = await withLimit(appendMessages(database, topic, messages), {
        timeoutMs: appendTimeoutMs,
        signal: AbortSignal.any([signal, closing.signal]),
      });
      session.notify(end);
    },
    consume(consume) {
      use();
      return new PostgresConsumer({ database, session, log, consume, lookMs });
    },
    seek: (seek, signal) => withLimit(seekGroup(database, seek), { signal }),
    ensureTopics: (topics, signal) =>
      Array.fromAsync(topics, (topic) => withLimit(ensureTopic(database, topic), { signal })),
    retentionMs: (topic, signal) => withLimit(topicRetentionMs(database, topic), { signal }),
    async close() {
      closing.abort(new Error("the bus was closed"));
      await Promise.all([session.close(), deleting]);
      // Waits for statements under way; a connection that hangs would never be given back.
      await withLimit(database.destroy(), { timeoutMs: closeTimeoutMs }).catch((thrown: unknown) => {
        log.warn({ err: thrown }, "the bus's connections could not be closed");
      });
    },
  };
}
