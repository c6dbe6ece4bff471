import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Child, startChild } from "../../../test/support/processes/child.ts";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import { startTestReceiver, type TestReceiver } from "../../../test/support/services/destination-receiver.ts";
import {
  addDestination,
  queueEvents,
  quickLimits,
  type Replica,
  type ReplicaOptions,
  startReplica,
  waitingFor,
} from "../../../test/support/services/destination-replica.ts";
import { testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import type { DestinationDatabase } from "../store.ts";
import { type ClaimedBatch, claimBatches } from "./claim.ts";
import { type AttemptReport, keepReports } from "./outcome.ts";

const patient = { timeoutMs: 60_000 };
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;
let receiver: TestReceiver;
let replicas: Replica[];
let children: Child[];

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());

beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
  receiver = await startTestReceiver();
  replicas = [];
  children = [];
});

afterEach(async () => {
  await receiver.close();
  for (const child of children) await child.kill();
  for (const replica of replicas) await replica.stop();
});

function deliver(options: Partial<ReplicaOptions> = {}): Replica {
  const replica = startReplica({ database: testDatabase.connect(4), ...options });
  replicas.push(replica);
  return replica;
}

const claim = (leaseMs: number) =>
  claimBatches({
    database,
    limits: { ...quickLimits, leaseMs },
    healthy: 10,
    failing: 10,
    maxBatchEvents: () => 10,
  });

function reportOf(batch: ClaimedBatch, changes: Partial<AttemptReport> = {}): AttemptReport {
  return {
    destinationId: batch.destination_id,
    leaseId: batch.lease_id,
    version: batch.version,
    batchId: batch.batch_id,
    batchThrough: batch.batch_through,
    eventCount: batch.events.length,
    attempt: batch.attempts + 1,
    isTaken: true,
    isFull: false,
    isTooLarge: false,
    status: 200,
    latencyMs: 1,
    cause: "",
    retryMs: 0,
    ...changes,
  };
}

const isAllDelivered = async () =>
  (await database.selectFrom("pending").select("position").limit(1).execute()).length === 0;

/** So many events of each account, queued in small parts. */
async function queueAll(accounts: readonly string[], count: number): Promise<void> {
  for (let index = 0; index < count; index++) {
    const events = accounts.map((accountId) =>
      usageEvent({ eventId: eventIdOf(accountId, index), accountId }),
    );
    await queueEvents(database, ...events);
  }
}

const eventIdOf = (accountId: string, index: number) =>
  `gen-tts-${Number.parseInt(accountId.slice(-6), 16)}-${index}`;

const accountsOf = (count: number) => Array.from({ length: count }, (_, index) => testUuid(index + 1));

test("replicas share the work, and each batch goes out once when nothing fails", async () => {
  const accounts = accountsOf(12);
  for (const account_id of accounts) {
    await addDestination(database, { account_id, url: receiver.url(account_id) });
  }
  const limits = { maxHealthyInFlight: 2, leaseMs: 60_000 };
  const pair = [deliver({ limits }), deliver({ limits })];
  await queueAll(accounts, 40);
  await waitUntil(isAllDelivered, patient);
  for (const account of accounts) {
    expect(receiver.taken(account)).toEqual(
      Array.from({ length: 40 }, (_, index) => `${eventIdOf(account, index)}/1`),
    );
  }
  const ids = receiver.requests.map(({ body }) => body.id);
  expect(new Set(ids).size).toBe(ids.length);
  await waitUntil(
    () => pair.reduce((sum, { deliveries }) => sum + deliveries.counters.deliveredBatches, 0) === ids.length,
  );
  for (const { deliveries } of pair) {
    expect(deliveries.counters.deliveredBatches).toBeGreaterThan(0);
    expect(deliveries.counters).toMatchObject({ failedAttempts: 0, repeatedBatches: 0 });
  }
});

test("a destination has one delivery under way, however many replicas there are", async () => {
  const accounts = accountsOf(3);
  for (const account_id of accounts) {
    await addDestination(database, { account_id, url: receiver.url(account_id) });
  }
  const running = new Map<string, number>();
  const most: number[] = [];
  receiver.answer = async ({ path }) => {
    const now = (running.get(path) ?? 0) + 1;
    running.set(path, now);
    most.push(now);
    await new Promise((resolve) => setImmediate(resolve));
    running.set(path, now - 1);
    return 200;
  };
  for (let count = 0; count < 3; count++) deliver({ limits: { leaseMs: 60_000 } });
  await queueAll(accounts, 60);
  await waitUntil(isAllDelivered, patient);
  expect(most.length).toBeGreaterThan(accounts.length);
  expect(Math.max(...most)).toBe(1);
});

test("what a replica that died had claimed is another's when the lease has run out, as it was", async () => {
  const account_id = testUuid(1);
  await addDestination(database, { account_id, url: receiver.url() });
  await queueAll([account_id], 3);
  const [dead] = (await claim(300)).batches;
  await queueAll([account_id], 6);
  expect((await claim(300)).batches).toEqual([]);
  deliver();
  await waitUntil(isAllDelivered, patient);
  expect(receiver.batches()[0]?.id).toBe(dead?.batch_id);
  expect(receiver.batches().map(({ events }) => events.length)).toEqual([3, 3]);
  if (dead === undefined) throw new Error("nothing was claimed");
  expect(await keepReports({ database, limits: quickLimits }, [reportOf(dead)])).toEqual(["overtaken"]);
});

test("a report that comes too late changes nothing", async () => {
  const account_id = testUuid(1);
  const id = await addDestination(database, { account_id, url: receiver.url() });
  await queueAll([account_id], 2);
  const [late] = (await claim(1)).batches;
  const [next] = await waitUntil(async () => {
    const { batches } = await claim(60_000);
    return batches.length > 0 ? batches : undefined;
  });
  if (late === undefined || next === undefined) throw new Error("nothing was claimed");
  expect({ ...next, lease_id: "" }).toEqual({ ...late, lease_id: "" });
  const reports = [reportOf(late), reportOf(late, { isTaken: false, cause: "no" })];
  expect(await keepReports({ database, limits: quickLimits }, reports)).toEqual(["overtaken", "overtaken"]);
  expect(await waitingFor(database, id)).toHaveLength(2);
  expect(await keepReports({ database, limits: quickLimits }, [reportOf(next)])).toEqual(["kept"]);
  expect(await waitingFor(database, id)).toEqual([]);
  const deliveries = await database.selectFrom("delivery").select("status").execute();
  expect(deliveries).toEqual([{ status: "delivered" }]);
});

test("nothing is lost by a replica that is killed with batches under way", async () => {
  const accounts = accountsOf(8);
  for (const account_id of accounts) {
    await addDestination(database, { account_id, url: receiver.url(account_id) });
  }
  await queueAll(accounts, 60);
  const gate = Promise.withResolvers<void>();
  receiver.answer = async ({ path }) => {
    // Half of them hear nothing before the process is gone; the other half took it, and its word of that is lost.
    if (accounts.indexOf(path.slice(1)) % 2 === 0) await gate.promise;
    return 200;
  };
  const limits = JSON.stringify({ leaseMs: 1500, maxHealthyInFlight: 20 });
  const victim = startChild("test/support/services/destination-process.ts", {
    args: [testDatabase.url, limits],
  });
  children.push(victim);
  await waitUntil(() => new Set(receiver.requests.map(({ path }) => path)).size === accounts.length, patient);
  await victim.kill();
  gate.resolve();
  expect(await isAllDelivered()).toBe(false);
  deliver({ limits: { leaseMs: 60_000 } });
  await waitUntil(isAllDelivered, patient);
  for (const account of accounts) {
    const expected = Array.from({ length: 60 }, (_, index) => `${eventIdOf(account, index)}/1`);
    expect(new Set(receiver.taken(account))).toEqual(new Set(expected));
    const contents = new Map<string, string>();
    for (const { body } of receiver.requests.filter(({ path }) => path === `/${account}`)) {
      expect(contents.get(body.id) ?? JSON.stringify(body)).toBe(JSON.stringify(body));
      contents.set(body.id, JSON.stringify(body));
    }
    expect([...contents.values()].flatMap((body) => JSON.parse(body).events)).toHaveLength(60);
  }
}, 120_000);

test("a destination that takes long has the room of those that fail, until it is quick again", async () => {
  const account_id = testUuid(1);
  await addDestination(database, { account_id, url: receiver.url() });
  const limits = { ...quickLimits, slowAfterMs: 2000, leaseMs: 60_000 };
  const claimWithRoom = (healthy: number, failing: number) =>
    claimBatches({ database, limits, healthy, failing, maxBatchEvents: () => 1 });
  await queueAll([account_id], 3);
  for (const [latencyMs, room] of [
    [2001, [1, 0]],
    [2000, [0, 1]],
    [1, [1, 0]],
  ] as const) {
    const [healthy, failing] = room;
    expect(await claimWithRoom(failing, healthy)).toEqual({ batches: [], nextDueMs: undefined });
    const [batch] = (await claimWithRoom(healthy, failing)).batches;
    if (batch === undefined) throw new Error("nothing was claimed");
    const report = reportOf(batch, { latencyMs, isFull: true });
    expect(await keepReports({ database, limits }, [report])).toEqual(["kept"]);
  }
});

test("slow destinations hold up nobody", async () => {
  const accounts = accountsOf(8);
  for (const account_id of accounts) {
    const id = await addDestination(database, { account_id, url: receiver.url(account_id) });
    if (account_id !== accounts[0])
      await sql`UPDATE lane SET is_slow = true WHERE destination_id = ${id}`.execute(database);
  }
  const [quick = ""] = accounts;
  const gate = Promise.withResolvers<number>();
  receiver.answer = ({ path }) => (path === `/${quick}` ? 200 : gate.promise);
  deliver({ limits: { maxHealthyInFlight: 2, maxFailingInFlight: 3, leaseMs: 60_000 } });
  await queueAll(accounts, 20);
  await waitUntil(() => receiver.taken(quick).length === 20, patient);
  const slow = () => receiver.requests.filter(({ path }) => path !== `/${quick}`);
  await waitUntil(() => slow().length >= 3, patient);
  expect(slow()).toHaveLength(3);
  gate.resolve(200);
  await waitUntil(isAllDelivered, patient);
});

test("dead destinations hold what waits for them, and hold up nobody", async () => {
  const accounts = accountsOf(10);
  const ways = ["hang", "cut", 500] as const;
  const dead = new Map<string, (typeof ways)[number]>();
  const ids = new Map<string, string>();
  for (const [index, account_id] of accounts.entries()) {
    for (let number = 0; number < 5; number++) {
      const name = `${account_id}-${number}`;
      const way = ways[index % ways.length] ?? "hang";
      if (number === 0) dead.set(`/${name}`, way);
      ids.set(name, await addDestination(database, { account_id, url: receiver.url(name) }));
    }
  }
  receiver.answer = ({ path }) => dead.get(path) ?? 200;
  // Fewer places for those that fail than there are dead ones.
  const limits = { maxHealthyInFlight: 12, maxFailingInFlight: 3, leaseMs: 60_000 };
  deliver({ limits });
  deliver({ limits });
  await queueAll(accounts, 30);
  const all = (account: string) => Array.from({ length: 30 }, (_, index) => `${eventIdOf(account, index)}/1`);
  for (const account of accounts) {
    for (let number = 1; number < 5; number++) {
      await waitUntil(() => receiver.taken(`${account}-${number}`).length >= 30, patient);
      expect(receiver.taken(`${account}-${number}`)).toEqual(all(account));
    }
    expect(receiver.taken(`${account}-0`)).toEqual([]);
    expect(await waitingFor(database, ids.get(`${account}-0`) ?? "")).toEqual(all(account));
  }
  dead.clear();
  await sql`UPDATE lane SET due_at = now() WHERE lease_id IS NULL AND due_at IS NOT NULL`.execute(database);
  for (const account of accounts.filter((_, index) => index % ways.length !== 0)) {
    await waitUntil(() => receiver.taken(`${account}-0`).length >= 30, patient);
    expect(receiver.taken(`${account}-0`)).toEqual(all(account));
  }
}, 120_000);
