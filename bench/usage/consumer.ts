/**
 * How many events a second the usage service records: by `recordEvents` alone, with two batches under way, and from
 * Kafka through the consumer, for several batch sizes. PostgreSQL, its disk flushed as in service, and the broker run
 * on the same machine. README.md says how to read it.
 */

import { createHash, randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { sql } from "kysely";
import { type GenerationEvent, Outcome } from "../../gen/media/event/v1/generation_event_pb.ts";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import { EventConsumer } from "../../lib/events/batch-consumer.ts";
import type { Bus } from "../../lib/events/bus.ts";
import { toEventMessage } from "../../lib/events/event-message.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { allTopics, generationEventsTopic } from "../../lib/events/topics.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { usageMigrations } from "../../services/usage/migrations.ts";
import { recordEvents } from "../../services/usage/record.ts";
import type { UsageDatabase, UsageTables } from "../../services/usage/store.ts";
import { startEmbeddedPostgres } from "../../standalone/embedded-postgres.ts";
import { kafkaUnavailable, startKafkaBroker } from "../../test/support/kafka/kafka-broker.ts";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { removeDataDirectory, temporaryDirectory } from "../../test/support/postgres/temporary-directory.ts";
import { usageEvent } from "../../test/support/services/usage-events.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { cpuMsOfDescendants } from "../process-usage.ts";

const { values } = parseArgs({
  options: {
    events: { type: "string", default: "200000" },
    sizes: { type: "string", default: "100,500,1000,2000,5000" },
    partitions: { type: "string", default: "12" },
  },
});
const eventCount = Number(values.events);
const sizes = values.sizes.split(",").map(Number);
const inFlight = 2;
const accounts = Array.from({ length: 200 }, () => randomUUID());
const endpoints = Array.from({ length: 20 }, () => randomUUID());
const { signal } = new AbortController();

const dataDir = await temporaryDirectory();
const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
const { schema } = usageMigrations;
const database = connectDatabase<UsageTables>({ url: postgres.url, schema, log: silentLog });
try {
  await migrateToLatest(database, usageMigrations);
  await benchRecording();
  const reason = kafkaUnavailable();
  if (reason === undefined) await benchConsumer();
  else console.log(reason);
} finally {
  await database.destroy();
  await postgres.stop();
  await removeDataDirectory(dataDir);
}

/** One of 20 endpoints, of 5 keys of one of 200 accounts; a second long and about 450 bytes large. */
function makeEvent(index: number): GenerationEvent {
  const account = index % accounts.length;
  const endpointId = endpoints[Math.floor(index / 7) % endpoints.length] ?? "";
  const endedMs = Date.now();
  const provider = { endpointId, providerSlug: "acme", providerName: "Acme" };
  const startedAt = timestampFromMs(endedMs - 1000);
  const attempt = {
    ...provider,
    outcome: Outcome.SUCCEEDED,
    startedAt,
    firstByteMs: 200n,
    durationMs: 1000n,
  };
  return usageEvent({
    ...provider,
    eventId: `gen-tts-${randomUUID()}`,
    requestId: `req-${randomUUID()}`,
    accountId: accounts[account] ?? "",
    keyHash: createHash("sha256")
      .update(`${account} ${index % 5}`)
      .digest("hex"),
    sessionId: `session-${index}`,
    units: { inputCharacters: 120n, outputAudioMs: 8000n },
    firstByteAt: timestampFromMs(endedMs - 800),
    streamed: true,
    attempts: [attempt],
    ended: endedMs,
  });
}

async function measure(what: string, size: number, work: () => Promise<void>): Promise<void> {
  const cpuBefore = process.cpuUsage();
  const othersBefore = cpuMsOfDescendants();
  const startedMs = performance.now();
  await work();
  const seconds = (performance.now() - startedMs) / 1000;
  const { user, system } = process.cpuUsage(cpuBefore);
  const others = cpuMsOfDescendants() - othersBefore;
  const perSecond = Math.round(eventCount / seconds).toLocaleString("en");
  const node = ((user + system) / eventCount).toFixed(1);
  const rest = ((others * 1000) / eventCount).toFixed(1);
  console.log(
    `${what}, batches of ${size}: ${perSecond} events/s; CPU an event: Node ${node} us, others ${rest} us`,
  );
}

async function empty(database: UsageDatabase): Promise<void> {
  await sql`TRUNCATE record, activity, activity_hour, listing, naming`.execute(database);
  await sql`CHECKPOINT`.execute(database);
}

async function benchRecording(): Promise<void> {
  for (const size of sizes) {
    await empty(database);
    const events = Array.from({ length: eventCount }, (_, index) => makeEvent(index));
    let next = 0;
    const worker = async () => {
      while (next < events.length) {
        const batch = events.slice(next, next + size);
        next += size;
        await recordEvents(database, batch, signal);
      }
    };
    await measure("recordEvents", size, async () => {
      await Promise.all(Array.from({ length: inFlight }, worker));
    });
  }
}

async function benchConsumer(): Promise<void> {
  const broker = await startKafkaBroker();
  const connection = { brokers: broker.brokers, ssl: false };
  const bus = createKafkaBus({ connection, clientId: "bench", log: silentLog });
  try {
    await fill(bus);
    for (const size of sizes) {
      await empty(database);
      await measureGroup(bus, size);
    }
  } finally {
    await bus.close();
    await broker.stop();
  }
}

async function fill(bus: Bus): Promise<void> {
  const layout = { partitions: Number(values.partitions), replication: 1, retentionMs: 86_400_000 };
  await bus.ensureTopics(allTopics(layout), AbortSignal.timeout(30_000));
  for (let sent = 0; sent < eventCount; sent += 2000) {
    const batch = Array.from({ length: Math.min(2000, eventCount - sent) }, (_, index) =>
      makeEvent(sent + index),
    );
    await sendMessages(bus, generationEventsTopic, batch.map(toEventMessage));
  }
}

/** From the first batch that is handed over, so that joining the group is left out, to the last that is stored. */
async function measureGroup(bus: Bus, size: number): Promise<void> {
  const first = Promise.withResolvers<void>();
  const begin = Promise.withResolvers<void>();
  const batches: number[] = [];
  const consumer = new EventConsumer({
    bus,
    group: `bench-${randomUUID()}`,
    log: silentLog,
    maxAgeMs: 86_400_000,
    maxBatchMessages: size,
    async apply(events, signal) {
      first.resolve();
      await begin.promise;
      batches.push(events.length);
      return recordEvents(database, events, signal);
    },
    isPoison: () => false,
  });
  await first.promise;
  await measure("from Kafka", size, async () => {
    begin.resolve();
    await waitUntil(() => consumer.applied === eventCount, { timeoutMs: 600_000, intervalMs: 5 });
  });
  const mean = Math.round(eventCount / batches.length);
  console.log(`  ${batches.length} batches, ${mean} events each`);
  await consumer.stop();
}
