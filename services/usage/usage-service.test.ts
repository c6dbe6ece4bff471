import { create } from "@bufbuild/protobuf";
import type { Interceptor } from "@connectrpc/connect";
import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../gen/media/account/v1/account_internal_pb.ts";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import type { Bus } from "../../lib/events/bus.ts";
import { toEventMessage } from "../../lib/events/event-message.ts";
import { createPostgresBus } from "../../lib/events/postgres/postgres-bus.ts";
import { busMigrations } from "../../lib/events/postgres/postgres-bus-migrations.ts";
import { allTopics, generationEventsTopic } from "../../lib/events/topics.ts";
import { createLocalTransport, createRpcClient } from "../../lib/rpc/client.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { awayBus } from "../../test/fakes/away-bus.ts";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { testUuid, type UsageEventInit, usageEvent } from "../../test/support/services/usage-events.ts";
import {
  startTestUsageServer,
  type TestUsageAccount,
  type TestUsageServer,
} from "../../test/support/services/usage-server.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { usageMigrations } from "./migrations.ts";
import type { UsageTables } from "./store.ts";
import { createUsageService } from "./usage-service.ts";

const dayMs = 86_400_000;
const retentionDays = 10;

test("without a database the service is not ready, and says unavailable rather than unknown", async () => {
  const database = connectDatabase<UsageTables>({
    url: "postgres://nobody:nothing@127.0.0.1:1/none",
    schema: "usage",
    log: silentLog,
  });
  const usage = createUsageService({
    database,
    log: silentLog,
    bus: awayBus,
    retentionDays,
    verifyToken: async () => ({ issuer: "gateway", subject: "", principal: undefined }),
    authenticateKey: async () => create(PrincipalSchema, { accountId: testUuid(1) }),
  });
  expect(await usage.readiness()).toEqual(["the database is away"]);
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", "Bearer sk-unknown");
    return next(request);
  };
  const transport = createLocalTransport(usage.routes, { interceptors: [authorize] });
  const generation = createRpcClient(UsageService, transport).getGeneration({ generationId: "gen-tts-1" });
  await expect(generation).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  await database.destroy();
});

describe("events on the bus", () => {
  let busDatabase: TestDatabase;
  let bus: Bus;
  let server: TestUsageServer;
  let account: TestUsageAccount;

  beforeEach(async () => {
    busDatabase = await createTestDatabase();
    const database = connectDatabase({ url: busDatabase.url, schema: "bus", log: silentLog });
    await migrateToLatest(database, busMigrations);
    await database.destroy();
    bus = createPostgresBus({ url: busDatabase.url, log: silentLog });
    server = await startTestUsageServer({ bus, retentionDays });
    account = await server.newAccount();
  });

  afterEach(async () => {
    await server.usage.stop();
    await bus.close();
    await server.close();
    await busDatabase.drop();
  });

  async function makeTopics(retentionMs = dayMs) {
    const layout = { partitions: 2, replication: 1, retentionMs };
    await bus.ensureTopics(allTopics(layout), AbortSignal.timeout(10_000));
  }

  function eventOf(init: UsageEventInit): GenerationEvent {
    return usageEvent({ accountId: account.accountId, ended: Date.now(), ...init });
  }

  async function send(...events: readonly GenerationEvent[]) {
    await sendMessages(bus, generationEventsTopic, events.map(toEventMessage), AbortSignal.timeout(10_000));
  }

  async function requests() {
    const usage = server.client(UsageService, `Bearer ${account.managementKey}`);
    const { items } = await usage.listActivity({});
    return items.reduce((sum, item) => sum + item.requests, 0n);
  }

  test("stand in the activity shortly after, and as a generation", async () => {
    await makeTopics();
    server.usage.start();
    await send(eventOf({ eventId: "gen-tts-1" }));
    await waitUntil(async () => (await requests()) === 1n);
    const event = eventOf({ eventId: "gen-tts-2" });
    await send(event);
    await waitUntil(async () => (await requests()) === 2n, { timeoutMs: 2000 });
    const usage = server.client(UsageService, `Bearer ${account.inferenceKey}`);
    expect((await usage.getGeneration({ generationId: event.eventId })).event).toEqual(event);
    await waitUntil(() => server.usage.consumer?.applied === 2);
    expect(server.usage.consumer).toMatchObject({ connected: true, deadLettered: 0 });
  });

  test("wait while the bus or the schema is not there, which keeps nobody from asking", async () => {
    await sql`ALTER TABLE activity RENAME TO away`.execute(server.database);
    server.usage.start();
    expect(await server.usage.readiness()).toEqual([]);
    await makeTopics();
    await send(eventOf({}));
    await waitUntil(() => (server.usage.consumer?.lag ?? 0) > 0);
    await sql`ALTER TABLE away RENAME TO activity`.execute(server.database);
    await waitUntil(async () => (await requests()) === 1n);
    expect(server.usage.consumer?.deadLettered).toBe(0);
  });

  test("that are too old, or that can't be stored, are quarantined and hold nothing up", async () => {
    await makeTopics();
    const edge = Date.now() - (retentionDays - 1) * dayMs;
    await send(
      eventOf({ eventId: "gen-tts-old", ended: edge - 60_000 }),
      eventOf({ eventId: "gen-tts-dear", costNanoUsd: 2n ** 62n }),
      eventOf({ eventId: "gen-tts-young", ended: edge + dayMs }),
      eventOf({ eventId: "gen-tts-new" }),
    );
    server.usage.start();
    await waitUntil(() => server.usage.consumer?.deadLettered === 2 && server.usage.consumer.applied === 2);
    const rows = await server.database.selectFrom("record").select("event_id").orderBy("event_id").execute();
    expect(rows.map(({ event_id }) => event_id)).toEqual(["gen-tts-new", "gen-tts-young"]);
  });

  test("that a sum has no room for are quarantined alone", async () => {
    await makeTopics();
    await server.record(eventOf({ eventId: "gen-tts-1" }));
    await sql`UPDATE activity SET charged_nano_usd = 9223372036854775807`.execute(server.database);
    await send(
      eventOf({ eventId: "gen-tts-2", keyHash: "0".repeat(64) }),
      eventOf({ eventId: "gen-tts-3" }),
      eventOf({ eventId: "gen-tts-4", keyHash: "0".repeat(64) }),
    );
    server.usage.start();
    await waitUntil(() => server.usage.consumer?.applied === 2 && server.usage.consumer.deadLettered === 1);
    const rows = await server.database.selectFrom("record").select("event_id").orderBy("event_id").execute();
    expect(rows.map(({ event_id }) => event_id)).toEqual(["gen-tts-1", "gen-tts-2", "gen-tts-4"]);
  });

  test("are not taken in from a topic that keeps them longer than copies can be recognized", async () => {
    await makeTopics((retentionDays - 1) * dayMs + 1);
    server.usage.start();
    const failure = await server.usage.consumer?.failed;
    expect(failure?.message).toContain(generationEventsTopic);
  });
});

test("the schema is named, and what is pending keeps the service from being ready", async () => {
  const { url, drop } = await createTestDatabase();
  const database = connectDatabase<UsageTables>({ url, schema: "usage", log: silentLog });
  const usage = createUsageService({
    database,
    log: silentLog,
    bus: awayBus,
    retentionDays,
    verifyToken: () => Promise.reject(new Error("not asked")),
    authenticateKey: () => Promise.reject(new Error("not asked")),
  });
  const pending = Object.keys(usageMigrations.migrations).join(", ");
  expect(await usage.readiness()).toEqual([`migrations pending: ${pending}`]);
  await migrateToLatest(database, usageMigrations);
  usage.start();
  expect(await usage.readiness()).toEqual([]);
  await usage.stop();
  await database.destroy();
  await drop();
});
