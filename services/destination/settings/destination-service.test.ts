import { create } from "@bufbuild/protobuf";
import type { Client, Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PrincipalSchema } from "../../../gen/media/account/v1/account_internal_pb.ts";
import { DeliveryStatus } from "../../../gen/media/destination/v1/destination_pb.ts";
import { DestinationService } from "../../../gen/media/destination/v1/destination_service_pb.ts";
import { ErrorReason } from "../../../gen/media/error/v1/error_reason_pb.ts";
import type { GenerationEvent } from "../../../gen/media/event/v1/generation_event_pb.ts";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { toEventMessage } from "../../../lib/events/event-message.ts";
import { createPostgresBus } from "../../../lib/events/postgres/postgres-bus.ts";
import { busMigrations } from "../../../lib/events/postgres/postgres-bus-migrations.ts";
import { allTopics, generationEventsTopic } from "../../../lib/events/topics.ts";
import { createLocalTransport, createRpcClient } from "../../../lib/rpc/client.ts";
import { createLog, silentLog } from "../../../lib/runtime/log.ts";
import { awayBus } from "../../../test/fakes/away-bus.ts";
import { sendMessages } from "../../../test/support/kafka/send-messages.ts";
import { createTestDatabase, type TestDatabase } from "../../../test/support/postgres/database.ts";
import { startTestReceiver, type TestReceiver } from "../../../test/support/services/destination-receiver.ts";
import { testSealer } from "../../../test/support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../../../test/support/services/destination-server.ts";
import { plainTypes } from "../../../test/support/services/destination-type.ts";
import {
  lostEvent,
  testUuid,
  type UsageEventInit,
  usageEvent,
} from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { openReceivers } from "../delivery/receivers.ts";
import { destinationMigrations } from "../migrations.ts";
import type { DestinationTables } from "../store.ts";
import { createDestinationService } from "./destination-service.ts";

const dayMs = 86_400_000;
const retentionDays = 10;
const patient = { timeoutMs: 25_000 };

function serviceOn(url: string) {
  const database = connectDatabase<DestinationTables>({ url, schema: "destination", log: silentLog });
  const receivers = openReceivers({ allowedCidrs: [] });
  const service = createDestinationService({
    database,
    recordAction: async () => undefined,
    log: silentLog,
    bus: awayBus,
    types: plainTypes,
    sealer: testSealer,
    receivers,
    retentionDays,
    verifyToken: async () => ({ issuer: "gateway", subject: "", principal: undefined }),
    authenticateKey: async () => create(PrincipalSchema, { accountId: testUuid(1), keyKind: 2 }),
  });
  const close = async () => {
    await service.stop();
    await receivers.close();
    await database.destroy();
  };
  return { service, database, close };
}

test("without a database the service is not ready, and says unavailable rather than unknown", async () => {
  const { service, close } = serviceOn("postgres://nobody:nothing@127.0.0.1:1/none");
  expect(await service.readiness()).toEqual(["the database is away"]);
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", "Bearer sk-unknown");
    return next(request);
  };
  const transport = createLocalTransport(service.routes, { interceptors: [authorize] });
  const call = createRpcClient(DestinationService, transport).getDestination({ id: testUuid(1) });
  await expect(call).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  await close();
});

test("the schema is named, and what is pending keeps the service from being ready", async () => {
  const { url, drop } = await createTestDatabase();
  const { service, database, close } = serviceOn(url);
  const names = Object.keys(destinationMigrations.migrations);
  expect(await service.readiness()).toEqual([`migrations pending: ${names.join(", ")}`]);
  await migrateToLatest(database, destinationMigrations);
  service.start();
  expect(await service.readiness()).toEqual([]);
  await close();
  await drop();
});

describe("events on the bus", () => {
  let busDatabase: TestDatabase;
  let bus: Bus;
  let server: TestDestinationServer;
  let receiver: TestReceiver;
  let account: TestDestinationAccount;
  let own: Client<typeof DestinationService>;
  let logLines: string[];

  beforeEach(async () => {
    busDatabase = await createTestDatabase();
    const database = connectDatabase({ url: busDatabase.url, schema: "bus", log: silentLog });
    await migrateToLatest(database, busMigrations);
    await database.destroy();
    bus = createPostgresBus({ url: busDatabase.url, log: silentLog });
    logLines = [];
    const destination = { write: (line: string) => logLines.push(line) };
    const log = createLog({ name: "destination", level: "trace", destination });
    server = await startTestDestinationServer({ bus, retentionDays, log });
    receiver = await startTestReceiver();
    account = await server.newAccount();
    own = server.client(DestinationService, `Bearer ${account.managementKey}`);
  });

  afterEach(async () => {
    await receiver.close();
    await server.destination.stop();
    await bus.close();
    await server.close();
    await busDatabase.drop();
  });

  async function makeTopics(retentionMs = dayMs) {
    const layout = { partitions: 2, replication: 1, retentionMs };
    await bus.ensureTopics(allTopics(layout), AbortSignal.timeout(10_000));
  }

  const eventOf = (init: UsageEventInit): GenerationEvent =>
    usageEvent({ accountId: account.accountId, ended: Date.now(), ...init });

  async function send(...events: readonly GenerationEvent[]) {
    await sendMessages(
      bus,
      generationEventsTopic,
      events.map((event) => toEventMessage(event)),
      AbortSignal.timeout(10_000),
    );
  }

  async function make(name: string, fields: object = {}) {
    const config = { url: receiver.url(name) };
    const { destination } = await own.createDestination({ type: "plain", name, config, ...fields });
    return destination?.id ?? "";
  }

  test("reach the destinations of their account, whatever came of them, and stand in the log", async () => {
    const id = await make("all");
    await make("failed", {
      filterRules: {
        groups: [
          {
            rules: [
              { field: "total_cost", operator: "lt", value: { kind: { case: "numberValue", value: 1e-9 } } },
            ],
          },
        ],
      },
    });
    await makeTopics();
    server.destination.start();
    await send(
      eventOf({ eventId: "gen-tts-1" }),
      eventOf({ eventId: "gen-tts-2", outcome: 2, reason: "provider_failed", costNanoUsd: 0n }),
      lostEvent({ eventId: "gen-tts-3", accountId: account.accountId, ended: Date.now() }),
      eventOf({ eventId: "gen-tts-4", accountId: testUuid(77) }),
    );
    await waitUntil(
      () => receiver.taken("all").length === 3 && receiver.taken("failed").length === 2,
      patient,
    );
    expect(receiver.taken("all")).toEqual(["gen-tts-1/1", "gen-tts-2/1", "gen-tts-3/0"]);
    expect(receiver.taken("failed")).toEqual(["gen-tts-2/1", "gen-tts-3/0"]);
    const deliveries = await waitUntil(async () => {
      const answer = await own.listDeliveries({ destinationId: id });
      return answer.totalCount > 0n ? answer.deliveries : undefined;
    }, patient);
    expect(deliveries[0]).toMatchObject({
      id: receiver.batches("all").at(-1)?.id,
      status: DeliveryStatus.DELIVERED,
      attempt: 1,
      responseStatus: 200,
      cause: "",
    });
  });

  test("are taken in and committed while every receiver hangs", async () => {
    const ids = [await make("a"), await make("b")];
    receiver.answer = () => "hang";
    await makeTopics();
    server.destination.start();
    await send(eventOf({ eventId: "gen-tts-1" }));
    await waitUntil(() => receiver.requests.length === 2, patient);
    const more = Array.from({ length: 50 }, (_, index) => eventOf({ eventId: `gen-tts-more-${index}` }));
    await send(...more);
    await waitUntil(() => server.destination.consumer?.lag === 0, patient);
    const { rows } = { rows: await server.database.selectFrom("pending").select("destination_id").execute() };
    for (const id of ids) expect(rows.filter((row) => row.destination_id === id)).toHaveLength(51);
    expect(receiver.requests).toHaveLength(2);
  });

  test.for([
    ["resumed", (id: string) => own.resumeDestination({ id })],
    ["changed", (id: string) => own.updateDestination({ id, config: { method: "PUT" } })],
  ] as const)("wait no longer once their destination is %s", async ([, act]) => {
    await server.close();
    const hourMs = 3_600_000;
    const limits = { pollMs: hourMs, firstRetryMs: hourMs, maxRetryMs: hourMs };
    server = await startTestDestinationServer({ bus, retentionDays, limits });
    account = await server.newAccount();
    own = server.client(DestinationService, `Bearer ${account.managementKey}`);
    const id = await make("all");
    receiver.answer = () => 500;
    await makeTopics();
    server.destination.start();
    await send(eventOf({ eventId: "gen-tts-1" }));
    await waitUntil(async () => (await own.listDeliveries({ destinationId: id })).totalCount === 1n, patient);
    receiver.answer = () => 200;
    await act(id);
    await waitUntil(() => receiver.requests.length === 2, patient);
  });

  test("wait while the bus or the schema is not there", async () => {
    await make("all");
    server.destination.start();
    expect(await server.destination.readiness()).toEqual([]);
    await makeTopics();
    await send(eventOf({ eventId: "gen-tts-1" }));
    await waitUntil(() => receiver.taken("all").length === 1, patient);
  });

  test("that are too old are quarantined and hold nothing up", async () => {
    await make("all");
    await makeTopics();
    const edge = Date.now() - (retentionDays - 1) * dayMs;
    await send(
      eventOf({ eventId: "gen-tts-old", ended: edge - 60_000 }),
      eventOf({ eventId: "gen-tts-young", ended: edge + dayMs }),
    );
    server.destination.start();
    await waitUntil(() => receiver.taken("all").length === 1, patient);
    expect(receiver.taken("all")).toEqual(["gen-tts-young/1"]);
    expect(server.destination.consumer?.deadLettered).toBe(1);
  });

  test("are not taken in from a topic that keeps them longer than copies can be recognized", async () => {
    await makeTopics((retentionDays - 1) * dayMs + 1);
    server.destination.start();
    const failure = await server.destination.consumer?.failed;
    expect(failure?.message).toContain(generationEventsTopic);
  });

  test("leave no secret and nobody's words in the log", async () => {
    const config = {
      url: receiver.url("all"),
      token: "canary-token-0123456789-abc",
      headers: { "x-key": "canary-header-0123456789" },
    };
    const { destination } = await own.createDestination({ type: "plain", name: "a", config });
    await makeTopics();
    let count = 0;
    receiver.answer = ({ headers }) =>
      ++count < 3 ? { status: 401, body: `not ${headers.authorization}, ${headers["x-key"]}` } : 200;
    server.destination.start();
    await send(
      eventOf({ endUser: "canary-user", sessionId: "canary-session", trace: { a: "canary-trace" } }),
    );
    await waitUntil(() => receiver.taken("all").length === 1, patient);
    expect(receiver.requests[0]?.headers).toMatchObject({
      authorization: "Bearer canary-token-0123456789-abc",
      "x-key": "canary-header-0123456789",
    });
    await own.testDestination({ id: destination?.id ?? "" });
    const { deliveries } = await own.listDeliveries({ destinationId: destination?.id ?? "" });
    expect(deliveries.map(({ cause }) => cause)).toContain("the receiver says 401");
    const lines = logLines.join("\n");
    expect(lines).toContain("delivery failed");
    expect(lines).not.toContain("canary");
  });
});
