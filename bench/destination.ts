/**
 * How long an event takes from its end to its receivers, over the bus, the queue and HTTP: 10 accounts with 5
 * destinations each, all of them well, then one of each account's dead, hanging on every attempt. PostgreSQL, which is
 * the bus too unless `--bus kafka`, and the receivers run on the same machine. README.md says how to read it.
 */

import { type ChildProcess, fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import { sql } from "kysely";
import { PrincipalSchema } from "../gen/media/account/v1/account_internal_pb.ts";
import { connectDatabase } from "../lib/database/connect.ts";
import { migrateToLatest } from "../lib/database/migrate.ts";
import type { Bus } from "../lib/events/bus.ts";
import { toEventMessage } from "../lib/events/event-message.ts";
import { createKafkaBus } from "../lib/events/kafka/kafka-bus.ts";
import { createPostgresBus } from "../lib/events/postgres/postgres-bus.ts";
import { busMigrations } from "../lib/events/postgres/postgres-bus-migrations.ts";
import { allTopics, generationEventsTopic } from "../lib/events/topics.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { openReceivers } from "../services/destination/delivery/receivers.ts";
import { destinationMigrations } from "../services/destination/migrations.ts";
import { createDestinationService } from "../services/destination/settings/destination-service.ts";
import type { DestinationDatabase, DestinationTables } from "../services/destination/store.ts";
import { startEmbeddedPostgres } from "../standalone/embedded-postgres.ts";
import { startKafkaBroker } from "../test/support/kafka/kafka-broker.ts";
import { sendMessages } from "../test/support/kafka/send-messages.ts";
import { removeDataDirectory, temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import { addDestination, loopback, testSealer } from "../test/support/services/destination-replica.ts";
import { plainTypes } from "../test/support/services/destination-type.ts";
import { usageEvent } from "../test/support/services/usage-events.ts";
import { waitUntil } from "../test/support/wait-until.ts";
import { cpuMsOfDescendants } from "./process-usage.ts";

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "200" },
    seconds: { type: "string", default: "30" },
    bus: { type: "string", default: "postgres" },
  },
});
const perSecond = Number(values.rate);
const seconds = Number(values.seconds);
/** Left out of the figures: connections are made, code is compiled. */
const warmUpSeconds = 5;
const ticksPerSecond = 50;
const destinationsOfAccount = 5;
const accounts = Array.from({ length: 10 }, () => randomUUID());

const dataDir = await temporaryDirectory();
const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
const receiver = fork(new URL("destination-receiver.ts", import.meta.url).pathname);
const { schema } = destinationMigrations;
const database = connectDatabase<DestinationTables>({ url: postgres.url, schema, log: silentLog });
const broker = values.bus === "kafka" ? await startKafkaBroker() : undefined;
const bus = broker === undefined ? await openPostgresBus() : openKafkaBus(broker.brokers);
try {
  await migrateToLatest(database, destinationMigrations);
  const layout = { partitions: 12, replication: 1, retentionMs: 86_400_000 };
  await bus.ensureTopics(allTopics(layout), AbortSignal.timeout(30_000));
  await bench(database, bus, receiver);
} finally {
  receiver.disconnect();
  await bus.close();
  await broker?.stop();
  await database.destroy();
  await postgres.stop();
  await removeDataDirectory(dataDir);
}

async function openPostgresBus(): Promise<Bus> {
  const { url } = postgres;
  const busDatabase = connectDatabase({ url, schema: busMigrations.schema, log: silentLog });
  await migrateToLatest(busDatabase, busMigrations);
  await busDatabase.destroy();
  return createPostgresBus({ url, log: silentLog });
}

function openKafkaBus(brokers: readonly string[]): Bus {
  return createKafkaBus({ connection: { brokers, ssl: false }, clientId: "bench", log: silentLog });
}

async function bench(database: DestinationDatabase, bus: Bus, receiver: ChildProcess): Promise<void> {
  const [port] = (await once(receiver, "message")) as [number];
  const receivers = openReceivers({ allowedCidrs: loopback });
  const service = createDestinationService({
    database,
    log: silentLog,
    bus,
    types: plainTypes,
    sealer: testSealer,
    receivers,
    retentionDays: 400,
    recordAction: async () => undefined,
    verifyToken: () => Promise.reject(new Error("nobody calls")),
    authenticateKey: async () => create(PrincipalSchema),
  });
  service.start();
  for (const deadOfAccount of [0, 1]) {
    await makeDestinations(database, port, deadOfAccount);
    await send(bus, warmUpSeconds);
    await settle(database, deadOfAccount);
    await delaysOf(receiver);
    const name = deadOfAccount === 0 ? "all well" : `${deadOfAccount * accounts.length} dead`;
    await measure(
      name,
      () => send(bus, seconds),
      receiver,
      async () => {
        await settle(database, deadOfAccount);
        return service.deliveries?.counters.deliveredBatches ?? 0;
      },
    );
  }
  await service.stop();
  await receivers.close();
}

async function makeDestinations(
  database: DestinationDatabase,
  port: number,
  deadOfAccount: number,
): Promise<void> {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
  for (const account_id of accounts) {
    for (let number = 0; number < destinationsOfAccount; number++) {
      const path = `${number < deadOfAccount ? "dead" : "well"}/${account_id}/${number}`;
      await addDestination(database, { account_id, url: `http://127.0.0.1:${port}/${path}` });
    }
  }
}

/** Sends events evenly, each when it has ended. */
async function send(bus: Bus, seconds: number): Promise<void> {
  const perTick = perSecond / ticksPerSecond;
  const startedMs = performance.now();
  const sending: Promise<void>[] = [];
  for (let tick = 0; tick < seconds * ticksPerSecond; tick++) {
    const waitMs = startedMs + (tick * 1000) / ticksPerSecond - performance.now();
    if (waitMs > 0) await delay(waitMs);
    const messages = Array.from({ length: perTick }, (_, index) => {
      const accountId = accounts[(tick * perTick + index) % accounts.length] ?? "";
      const eventId = `gen-tts-${randomUUID()}`;
      return toEventMessage(
        usageEvent({ eventId, accountId, sessionId: `session-${tick % 100}`, ended: Date.now() }),
      );
    });
    sending.push(sendMessages(bus, generationEventsTopic, messages));
  }
  await Promise.all(sending);
}

/** Waits until nothing waits but for the dead. */
async function settle(database: DestinationDatabase, deadOfAccount: number): Promise<void> {
  const dead = deadOfAccount * accounts.length;
  await delay(1000);
  await waitUntil(
    async () => {
      const { rows } = await sql<{ lanes: bigint }>`
        SELECT count(DISTINCT destination_id) AS lanes FROM pending`.execute(database);
      return Number(rows[0]?.lanes ?? 0n) <= dead;
    },
    { timeoutMs: 60_000, intervalMs: 100 },
  );
}

async function delaysOf(receiver: ChildProcess): Promise<number[]> {
  receiver.send("report");
  const [delaysMs] = (await once(receiver, "message")) as [number[]];
  return delaysMs.sort((a, b) => a - b);
}

async function measure(
  name: string,
  work: () => Promise<void>,
  receiver: ChildProcess,
  settled: () => Promise<number>,
): Promise<void> {
  const before = await settled();
  const cpuBefore = process.cpuUsage();
  const othersBefore = cpuMsOfDescendants();
  await work();
  const { user, system } = process.cpuUsage(cpuBefore);
  const othersMs = cpuMsOfDescendants() - othersBefore;
  const batches = (await settled()) - before;
  const delaysMs = await delaysOf(receiver);
  const at = (share: number) => delaysMs[Math.min(delaysMs.length - 1, Math.floor(delaysMs.length * share))];
  const cores = (ms: number) => (ms / 1000 / seconds).toFixed(2);
  console.log(
    `${name}: ${perSecond} events/s, ${delaysMs.length} deliveries of events in ${batches} batches; ` +
      `delay p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${delaysMs.at(-1)} ms; ` +
      `cores busy: Node ${cores((user + system) / 1000)}, others ${cores(othersMs)}`,
  );
}
