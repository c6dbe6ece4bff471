import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DestinationService } from "../../gen/media/destination/v1/destination_service_pb.ts";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import type { Bus } from "../../lib/events/bus.ts";
import { toEventMessage } from "../../lib/events/event-message.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { allTopics, generationEventsTopic } from "../../lib/events/topics.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { destinationMigrations } from "../../services/destination/migrations.ts";
import type { DestinationTables } from "../../services/destination/store.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import { startTestReceiver, type TestReceiver } from "../support/services/destination-receiver.ts";
import { queueEvents } from "../support/services/destination-replica.ts";
import {
  startTestDestinationServer,
  type TestDestinationAccount,
  type TestDestinationServer,
} from "../support/services/destination-server.ts";
import { usageEvent } from "../support/services/usage-events.ts";
import { waitUntil } from "../support/wait-until.ts";

const dayMs = 86_400_000;
const patient = { timeoutMs: 60_000 };
/** Nothing listens there. */
const nowhere = "127.0.0.1:1";
const secret = `whsec_${Buffer.alloc(32, 5).toString("base64")}`;
let server: TestDestinationServer;
let account: TestDestinationAccount;
let receiver: TestReceiver;
let empty: TestDatabase;
let children: Child[];
let broker: KafkaBroker | undefined;

beforeEach(async () => {
  children = [];
  broker = undefined;
  server = await startTestDestinationServer();
  account = await server.newAccount();
  receiver = await startTestReceiver();
  empty = await createTestDatabase();
});

afterEach(async () => {
  for (const child of children) await child.kill();
  await broker?.stop();
  await receiver.close();
  await server.close();
  await empty.drop();
});

function run(env: Record<string, string> = {}): Child {
  const { keyFiles } = server.account;
  const child = startChild("services/destination/main.ts", {
    env: {
      PORT: "0",
      DATABASE_URL: empty.url,
      KAFKA_BROKERS: nowhere,
      ACCOUNT_URL: server.account.url,
      MASTER_KEYS: `k:${Buffer.alloc(32, 1).toString("base64")}`,
      DESTINATION_ALLOWED_CIDRS: "127.0.0.0/8",
      SERVICE_KEY_FILE: keyFiles.keyFile("destination"),
      SERVICE_JWKS_FILE: keyFiles.jwksFile,
      DRAIN_DELAY_MS: "0",
      ...env,
    },
  });
  children.push(child);
  return child;
}

async function start(env?: Record<string, string>) {
  const child = run(env);
  return { child, url: `http://127.0.0.1:${await child.listeningPort("rpc")}` };
}

async function readiness(url: string) {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: (await response.json()) as { problems?: string[] } };
}

async function ask(url: string, rpc: string, body: object) {
  const response = await fetch(`${url}/${DestinationService.typeName}/${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${account.managementKey}` },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

function openDatabase() {
  const { schema } = destinationMigrations;
  return connectDatabase<DestinationTables>({ url: empty.url, schema, log: silentLog });
}

async function migrate() {
  const database = openDatabase();
  await migrateToLatest(database, destinationMigrations);
  await database.destroy();
}

const webhook = () => ({
  type: "webhook",
  name: "Ours",
  config: { url: receiver.url("hook"), signingSecret: secret },
});

const soon = () => AbortSignal.timeout(60_000);

/** So many events of the account; resolves with their ids. */
async function sendEvents(bus: Bus, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => `gen-tts-${randomUUID()}`);
  const { accountId } = account;
  const events = names.map((eventId) => usageEvent({ eventId, accountId, ended: Date.now() }));
  const messages = events.map((event) => toEventMessage(event));
  await sendMessages(bus, generationEventsTopic, messages, soon());
  return names;
}

async function startBroker(retentionMs: number) {
  broker = await startKafkaBroker();
  const connection = { brokers: broker.brokers, ssl: false };
  const bus = createKafkaBus({ connection, clientId: "test", log: silentLog });
  await bus.ensureTopics(allTopics({ partitions: 2, replication: 1, retentionMs }), soon());
  return { bus, env: { KAFKA_BROKERS: broker.brokers.join(",") } };
}

test("waits for its migrations, not for Kafka, answers callers, and stops when told to", async () => {
  const { child, url } = await start();
  expect(await readiness(url)).toMatchObject({
    status: 503,
    body: { problems: [`migrations pending: ${Object.keys(destinationMigrations.migrations).join(", ")}`] },
  });
  await migrate();
  expect((await readiness(url)).status).toBe(200);
  const made = await ask(url, "CreateDestination", webhook());
  expect(made).toMatchObject({ status: 200, body: { destination: { type: "webhook", enabled: true } } });
  const { destination } = made.body as { destination: { id: string } };
  const tested = await ask(url, "TestDestination", { id: destination.id });
  expect(tested).toEqual({ status: 200, body: { ok: true, responseStatus: 200 } });
  expect(receiver.requests[0]?.headers).toMatchObject({ "x-test-connection": "true" });
  expect(await child.stop()).toBe(0);
  const lines = child.lines.join("\n");
  for (const word of [account.managementKey.slice(3, 23), secret.slice(6, 30)]) {
    expect(lines).not.toContain(word);
  }
}, 120_000);

test("delivers what waits while Kafka is away, and ends what is under way when it is told to stop", async () => {
  await migrate();
  const { child, url } = await start();
  expect((await ask(url, "CreateDestination", webhook())).status).toBe(200);
  const database = openDatabase();
  const queue = (eventId: string) =>
    queueEvents(database, usageEvent({ eventId, accountId: account.accountId }));
  const { promise, resolve } = Promise.withResolvers<number>();
  receiver.answer = () => promise;
  await queue("gen-tts-1");
  await waitUntil(() => receiver.requests.length === 1, patient);
  await queue("gen-tts-2");
  const stopped = child.stop();
  const isOpen = () =>
    readiness(url).then(
      ({ status }) => status === 200,
      () => false,
    );
  await waitUntil(async () => !(await isOpen()), patient);
  resolve(200);
  expect(await stopped).toBe(0);
  expect(receiver.requests).toHaveLength(1);
  const waiting = await database.selectFrom("pending").select("event_id").execute();
  expect(waiting).toEqual([{ event_id: "gen-tts-2" }]);
  await database.destroy();
}, 120_000);

test("delivers what Kafka holds, with as many replicas as there are", async (context) => {
  needKafka(context);
  await migrate();
  const { bus, env } = await startBroker(dayMs);
  const [first, second] = await Promise.all([start(env), start(env)]);
  expect((await ask(first.url, "CreateDestination", webhook())).status).toBe(200);
  const names = await sendEvents(bus, 20);
  await bus.close();
  const isTold = () => {
    const bodies = receiver.requests.map(({ body }) => JSON.stringify(body)).join();
    return names.every((name) => bodies.includes(name));
  };
  await waitUntil(isTold, patient);
  expect(await Promise.all([first.child.stop(), second.child.stop()])).toEqual([0, 0]);
}, 120_000);

test("loses nothing when it is killed with deliveries under way", async (context) => {
  needKafka(context);
  await migrate();
  const { bus, env } = await startBroker(dayMs);
  const first = await start(env);
  const paths = ["a", "b", "c", "d"];
  for (const path of paths) {
    const config = { url: receiver.url(path) };
    expect((await ask(first.url, "CreateDestination", { ...webhook(), config })).status).toBe(200);
  }
  const gate = Promise.withResolvers<number>();
  receiver.answer = () => gate.promise;
  const names = await sendEvents(bus, 10);
  await waitUntil(() => new Set(receiver.requests.map(({ path }) => path)).size === paths.length, patient);
  const second = await start(env);
  names.push(...(await sendEvents(bus, 10)));
  await bus.close();
  await first.child.kill();
  gate.resolve(200);
  // Nobody heard of a taken batch but who lives on: the log has what was answered.
  const database = openDatabase();
  const delivered = async () => {
    const rows = await database
      .selectFrom("delivery")
      .selectAll()
      .where("status", "=", "delivered")
      .execute();
    const byDestination = Map.groupBy(rows, (row) => row.destination_id);
    return [...byDestination.values()].map((of) => of.reduce((sum, row) => sum + row.event_count, 0));
  };
  const isWhole = (counts: number[]) =>
    counts.length === paths.length && counts.every((count) => count >= names.length);
  await waitUntil(async () => isWhole(await delivered()), patient);
  expect(await delivered()).toEqual(paths.map(() => names.length));
  expect(await database.selectFrom("pending").select("event_id").execute()).toEqual([]);
  await database.destroy();
  for (const path of paths) {
    const requests = receiver.requests.filter((request) => request.path === `/${path}`);
    const bodies = requests.map(({ body }) => JSON.stringify(body)).join();
    for (const name of names) expect(bodies).toContain(name);
  }
  expect(await second.child.stop()).toBe(0);
}, 240_000);

test("ends with a fatal line when the topic keeps events longer than it can tell copies apart", async (context) => {
  needKafka(context);
  await migrate();
  const { bus, env } = await startBroker(4 * dayMs);
  await bus.close();
  const { child } = await start({ ...env, USAGE_RETENTION_DAYS: "4" });
  expect(await child.exited).toBe(1);
  const line = child.lines.find((text) => text.includes("shorten the topic's retention")) ?? "{}";
  expect(JSON.parse(line)).toMatchObject({ level: "fatal" });
}, 120_000);

test.for<[string, Record<string, string>, RegExp]>([
  [
    "malformed variables",
    { DESTINATION_ALLOWED_CIDRS: "10.0.0.0", MASTER_KEYS: "" },
    /DESTINATION_ALLOWED_CIDRS.*MASTER_KEYS|MASTER_KEYS.*DESTINATION_ALLOWED_CIDRS/,
  ],
  ["weak master keys", { MASTER_KEYS: "k:c2hvcnQ=" }, /MASTER_KEYS must be/],
  ["half of a login", { KAFKA_USERNAME: "d" }, /KAFKA_\w+ is required with KAFKA_USERNAME/],
  ["another's key", { SERVICE_KEY_FILE: "absent.jwk" }, /absent.jwk can't be read/],
])("says in one line that %s keep it from starting", async ([, env, message]) => {
  const child = run(env);
  expect(await child.exited).toBe(1);
  expect(child.lines).toEqual([expect.stringMatching(message)]);
});
