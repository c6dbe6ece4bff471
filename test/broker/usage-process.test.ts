import { afterEach, beforeEach, expect, test } from "vitest";
import { UsageService } from "../../gen/media/usage/v1/usage_service_pb.ts";
import { toEventMessage } from "../../lib/events/event-message.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { allTopics, generationEventsTopic } from "../../lib/events/topics.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { usageMigrations } from "../../services/usage/migrations.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import { usageEvent } from "../support/services/usage-events.ts";
import {
  startTestUsageServer,
  type TestUsageAccount,
  type TestUsageServer,
} from "../support/services/usage-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const dayMs = 86_400_000;
/** Nothing listens there. */
const nowhere = "127.0.0.1:1";
let server: TestUsageServer;
let account: TestUsageAccount;
let empty: TestDatabase;
let children: Child[];
let broker: KafkaBroker | undefined;

beforeEach(async () => {
  children = [];
  broker = undefined;
  server = await startTestUsageServer();
  account = await server.newAccount();
  empty = await createTestDatabase();
});

afterEach(async () => {
  for (const child of children) await child.kill();
  await broker?.stop();
  await server.close();
  await empty.drop();
});

function run(script: string, env: Record<string, string> = {}): Child {
  const { keyFiles } = server.account;
  const child = startChild(script, {
    env: {
      PORT: "0",
      DATABASE_URL: server.databaseUrl,
      KAFKA_BROKERS: nowhere,
      ACCOUNT_URL: server.account.url,
      SERVICE_KEY_FILE: keyFiles.keyFile("usage"),
      SERVICE_JWKS_FILE: keyFiles.jwksFile,
      DRAIN_DELAY_MS: "0",
      ...env,
    },
  });
  children.push(child);
  return child;
}

async function start(env?: Record<string, string>) {
  const child = run("services/usage/main.ts", env);
  return { child, url: `http://127.0.0.1:${await child.listeningPort("rpc")}` };
}

async function readiness(url: string) {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: (await response.json()) as { problems?: string[] } };
}

async function requests(url: string) {
  const response = await fetch(`${url}/${UsageService.typeName}/ListActivity`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${account.managementKey}` },
    body: "{}",
  });
  const { items = [] } = (await response.json()) as { items?: { requests: string }[] };
  return { status: response.status, requests: items.reduce((sum, item) => sum + Number(item.requests), 0) };
}

async function startBroker(retentionMs: number) {
  broker = await startKafkaBroker();
  const bus = createKafkaBus({
    connection: { brokers: broker.brokers, ssl: false },
    clientId: "test",
    log: silentLog,
  });
  const signal = AbortSignal.timeout(20_000);
  await bus.ensureTopics(allTopics({ partitions: 2, replication: 1, retentionMs }), signal);
  const events = ["gen-tts-1", "gen-tts-2"].map((eventId) =>
    usageEvent({ eventId, accountId: account.accountId, ended: Date.now() }),
  );
  await sendMessages(bus, generationEventsTopic, events.map(toEventMessage), signal);
  await bus.close();
  return { broker, env: { KAFKA_BROKERS: broker.brokers.join(",") } };
}

test("waits for its migrations, not for Kafka, answers callers, and stops when told to", async () => {
  const names = Object.keys(usageMigrations.migrations).join(", ");
  const { child, url } = await start({ DATABASE_URL: empty.url });
  expect(await readiness(url)).toMatchObject({
    status: 503,
    body: { problems: [`migrations pending: ${names}`] },
  });
  const migration = run("commands/migrate.ts", { DATABASE_URL: empty.url });
  expect(await migration.exited).toBe(0);
  expect(migration.lines).toContain(`usage: applied ${names}`);
  expect((await readiness(url)).status).toBe(200);
  expect(await requests(url)).toEqual({ status: 200, requests: 0 });
  expect(await child.stop()).toBe(0);
  expect(child.lines.join("\n")).not.toContain(account.managementKey.slice(3, 23));
});

test("takes in what Kafka holds once it is back, with as many replicas as there are", async (context) => {
  needKafka(context);
  const { broker, env } = await startBroker(dayMs);
  await broker.kill();
  const [first, second] = await Promise.all([start(env), start(env)]);
  expect((await readiness(first.url)).status).toBe(200);
  expect(await requests(first.url)).toEqual({ status: 200, requests: 0 });
  await broker.restart();
  await waitUntil(async () => (await requests(second.url)).requests === 2, { timeoutMs: 120_000 });
  expect(await Promise.all([first.child.stop(), second.child.stop()])).toEqual([0, 0]);
  expect(await requestsRecorded()).toBe(2);
}, 180_000);

async function requestsRecorded() {
  const cells = await server.database.selectFrom("activity").select("requests").execute();
  return Number(cells.reduce((sum, cell) => sum + cell.requests, 0n));
}

test("ends when the topic keeps events longer than it can tell copies apart", async (context) => {
  needKafka(context);
  const { env } = await startBroker(4 * dayMs);
  const { child } = await start({ ...env, USAGE_RETENTION_DAYS: "4" });
  expect(await child.exited).toBe(1);
  expect(child.lines.join("\n")).toContain("shorten the topic's retention");
}, 180_000);

test.for<[string, Record<string, string>, RegExp]>([
  [
    "malformed variables",
    { USAGE_RETENTION_DAYS: "1", KAFKA_BROKERS: "" },
    /KAFKA_BROKERS.*USAGE_RETENTION_DAYS|USAGE_RETENTION_DAYS.*KAFKA_BROKERS/,
  ],
  ["half of a login", { KAFKA_USERNAME: "usage" }, /KAFKA_\w+ is required with KAFKA_USERNAME/],
  ["another's key", { SERVICE_KEY_FILE: "absent.jwk" }, /absent.jwk can't be read/],
])("says in one line that %s keep it from starting", async ([, env, message]) => {
  const child = run("services/usage/main.ts", env);
  expect(await child.exited).toBe(1);
  expect(child.lines).toEqual([expect.stringMatching(message)]);
});
