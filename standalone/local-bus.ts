import { migrateSchema } from "../lib/database/migrate.ts";
import type { Bus } from "../lib/events/bus.ts";
import { kafkaConnection, topicLayout } from "../lib/events/kafka/kafka-config.ts";
import { createPostgresBus } from "../lib/events/postgres/postgres-bus.ts";
import { busMigrations } from "../lib/events/postgres/postgres-bus-migrations.ts";
import { allTopics } from "../lib/events/topics.ts";
import type { Log } from "../lib/runtime/log.ts";
import type { StandaloneConfig } from "./config.ts";

interface LocalBusOptions {
  readonly config: StandaloneConfig;
  readonly databaseUrl: string;
  readonly log: Log;
}

const topicsTimeoutMs = 30_000;

/** The bus of this process: on its own PostgreSQL, with its topics made, or Kafka where that is configured. */
export async function openLocalBus({ config, databaseUrl, log }: LocalBusOptions): Promise<Bus> {
  const { KAFKA_BROKERS: brokers } = config;
  if (brokers !== undefined) {
    const { createKafkaBus } = await import("../lib/events/kafka/kafka-bus.ts");
    const connection = kafkaConnection({ ...config, KAFKA_BROKERS: brokers });
    return createKafkaBus({ connection, clientId: "standalone", log });
  }
  await migrateSchema(databaseUrl, busMigrations, log);
  const bus = createPostgresBus({ url: databaseUrl, log });
  await bus.ensureTopics(
    allTopics({ ...topicLayout(config), replication: 1 }),
    AbortSignal.timeout(topicsTimeoutMs),
  );
  return bus;
}
