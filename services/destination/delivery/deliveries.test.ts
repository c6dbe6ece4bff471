import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createLog } from "../../../lib/runtime/log.ts";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import { startTestReceiver, type TestReceiver } from "../../../test/support/services/destination-receiver.ts";
import {
  addDestination,
  queueEvents,
  type Replica,
  type ReplicaOptions,
  startReplica,
  testKeeper,
  waitingFor,
} from "../../../test/support/services/destination-replica.ts";
import { testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import {
  changeDestination,
  deleteDestination,
  getDestination,
  listDeliveries,
  resumeDestination,
} from "../settings/destinations.ts";
import type { DestinationDatabase } from "../store.ts";
import { destinationTypes } from "../types/registry.ts";

const patient = { timeoutMs: 25_000 };
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;
let receiver: TestReceiver;
let accountCount = 0;
let account_id: string;
let replicas: Replica[];

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());

beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
  receiver = await startTestReceiver();
  account_id = testUuid(++accountCount);
  replicas = [];
});

afterEach(async () => {
  await receiver.close();
  for (const replica of replicas) await replica.stop();
});

function deliver(options: Partial<ReplicaOptions> = {}): Replica {
  const replica = startReplica({ database, ...options });
  replicas.push(replica);
  return replica;
}

const add = (name = "", fields = {}) =>
  addDestination(database, { account_id, url: receiver.url(name), ...fields });

function queue(first: number, count: number, init = {}) {
  const events = Array.from({ length: count }, (_, index) =>
    usageEvent({ eventId: `gen-tts-${first + index}`, accountId: account_id, ...init }),
  );
  return queueEvents(database, ...events);
}

const named = (first: number, count: number) =>
  Array.from({ length: count }, (_, index) => `gen-tts-${first + index}/1`);

async function log(id: string) {
  const { rows } = await listDeliveries(database, { id, accountId: account_id }, { offset: 0, limit: 100 });
  return rows.toReversed();
}

async function queueOf(id: string) {
  return database.selectFrom("lane").selectAll().where("destination_id", "=", id).executeTakeFirstOrThrow();
}

const isEmpty = async (id: string) => (await waitingFor(database, id)).length === 0;

describe("what waits", () => {
  test("is delivered in batches, once, and logged", async () => {
    const id = await add();
    await queue(0, 120, { costNanoUsd: 9n });
    const { deliveries } = deliver();
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 120));
    expect(receiver.batches().map(({ events }) => events.length)).toEqual([50, 50, 20]);
    const [first] = receiver.batches();
    expect(first?.disclosed).toEqual({ cost: true, identity: true, requestContext: true });
    expect(first?.events[0]).toMatchObject({ costNanoUsd: "9", keyName: "a key" });
    const rows = await log(id);
    expect(rows.map(({ batch_id }) => batch_id)).toEqual(receiver.batches().map((batch) => batch.id));
    expect(rows).toMatchObject(
      [50, 50, 20].map((event_count) => ({
        status: "delivered",
        attempt: 1,
        event_count,
        response_status: 200,
        cause: "",
      })),
    );
    await waitUntil(() => deliveries.counters.deliveredBatches === 3);
    expect(deliveries.counters).toMatchObject({
      deliveredEvents: 120,
      failedAttempts: 0,
      repeatedBatches: 0,
    });
    expect(await queueOf(id)).toMatchObject({ due_at: null, lease_id: null, batch_id: null, failures: 0 });
  });

  test("and what comes meanwhile finds its way without being looked for", async () => {
    const id = await add();
    const { deliveries } = deliver({ limits: { pollMs: 60_000, batchIntervalMs: 10 } });
    for (let round = 0; round < 10; round++) {
      await queue(round, 1);
      deliveries.wake();
      await waitUntil(() => receiver.taken().length === round + 1, patient);
    }
    await waitUntil(() => isEmpty(id));
    expect(receiver.taken()).toEqual(named(0, 10));
  });

  test("is never in one batch with what discloses other fields", async () => {
    const id = await add();
    const change = { tells_cost: false, sealed: undefined } as Parameters<typeof changeDestination>[2];
    await queue(0, 2);
    await changeDestination(database, { id, version: 1 }, change);
    await queue(2, 2);
    await changeDestination(database, { id, version: 2 }, { ...change, tells_cost: true });
    deliver();
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.batches().map(({ disclosed, events }) => [disclosed.cost, events.length])).toEqual([
      [true, 2],
      [false, 2],
    ]);
  });

  test("discloses nothing any more that its owner has withdrawn since", async () => {
    const id = await add();
    await queue(0, 1, { endUser: "canary", sessionId: "canary" });
    const change = { privacy_mode: true, sealed: undefined } as Parameters<typeof changeDestination>[2];
    await changeDestination(database, { id, version: 1 }, change);
    deliver();
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 1));
    expect(JSON.stringify(receiver.requests.map(({ body }) => body))).not.toContain("canary");
    expect(receiver.batches()[0]?.disclosed.requestContext).toBe(false);
  });
});

describe("a receiver that", () => {
  test("is down for a while gets the same batch again and again, and then everything", async () => {
    const id = await add();
    await queue(0, 60);
    receiver.answer = () => 500;
    deliver();
    await waitUntil(() => receiver.requests.length >= 5, patient);
    await queue(60, 10);
    await waitUntil(() => receiver.requests.length >= 8, patient);
    const refused = receiver.requests.map(({ body }) => JSON.stringify(body));
    expect(new Set(refused).size).toBe(1);
    const { last_failure, failing_since } = await queueOf(id);
    expect({ last_failure, failing: failing_since !== null }).toEqual({
      last_failure: "the receiver says 500",
      failing: true,
    });
    receiver.answer = () => 204;
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 70));
    const rows = await log(id);
    expect(rows[3]).toMatchObject({ status: "retrying", attempt: 4, response_status: 500, event_count: 50 });
    expect(rows.at(-1)).toMatchObject({ status: "delivered", attempt: 1, response_status: 204 });
    expect(await queueOf(id)).toMatchObject({ last_failure: "", failing_since: null, failures: 0 });
  });

  test("flaps, cuts and hangs gets everything, each batch under one id", async () => {
    const id = await add();
    await queue(0, 200);
    const answers = [503, 200, "cut", "hang", 200, 400, "cut", 200] as const;
    let count = 0;
    receiver.answer = () => answers[count++ % answers.length] ?? 200;
    deliver({ limits: { attemptTimeoutMs: 300 } });
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 200));
    const bodyOf = new Map(receiver.requests.map(({ body }) => [body.id, JSON.stringify(body)]));
    expect(bodyOf.size).toBe(4);
    for (const { body } of receiver.requests) expect(bodyOf.get(body.id)).toBe(JSON.stringify(body));
    const causes = (await log(id)).map(({ cause }) => cause);
    expect(causes).toContain("no answer came in time");
    expect(causes).toContain("the connection broke off before the answer was whole");
  });

  test("asks to wait is left alone for so long, until its owner says otherwise", async () => {
    const id = await add();
    await queue(0, 1);
    receiver.answer = () => ({ status: 429, headers: { "retry-after": "1200" } });
    deliver();
    const waiting = await waitUntil(async () => {
      const { lease_id, failures, due_at } = await queueOf(id);
      return failures === 1 && lease_id === null ? due_at : undefined;
    }, patient);
    expect(waiting.getTime() - Date.now()).toBeGreaterThan(1100_000);
    receiver.answer = () => 200;
    await resumeDestination(database, { id, accountId: account_id });
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.requests).toHaveLength(2);
  });

  test("finds a batch too large gets it in parts", async () => {
    const id = await add();
    await queue(0, 50);
    receiver.answer = ({ body }) => (body.events.length > 15 ? 413 : 200);
    deliver();
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 50));
    expect(receiver.requests.map(({ body }) => body.events.length)).toEqual([50, 25, 12, 12, 12, 12, 2]);
  });

  test.for(["before", "after"])(
    "has a new address, set %s the old one failed, is tried there at once",
    async (when) => {
      const id = await add("old");
      await queue(0, 1);
      const failing = Promise.withResolvers<void>();
      receiver.answer = async ({ path }) => {
        if (path !== "/old") return 200;
        await failing.promise;
        return { status: 503, headers: { "retry-after": "900" } };
      };
      deliver();
      await waitUntil(() => receiver.requests.length === 1, patient);
      if (when === "after") {
        failing.resolve();
        await waitUntil(async () => (await queueOf(id)).failures === 1, patient);
      }
      const settings = { url: receiver.url("new"), method: "POST", headers: {} };
      const sealed = testKeeper().seal(settings, { id, account_id });
      await changeDestination(database, { id, version: 1 }, { sealed } as Parameters<
        typeof changeDestination
      >[2]);
      failing.resolve();
      await waitUntil(() => isEmpty(id), patient);
      expect(receiver.taken("new")).toEqual(named(0, 1));
      expect(receiver.requests).toHaveLength(2);
    },
  );
});

describe("a destination", () => {
  test("is paused after sustained failure, keeps what waits, and goes on when it is resumed", async () => {
    const id = await add();
    await queue(0, 3);
    receiver.answer = () => 500;
    deliver({ limits: { pauseAfterMs: 1, pauseAfterFailures: 3 } });
    await waitUntil(async () => (await queueOf(id)).paused_at !== null, patient);
    expect(receiver.requests).toHaveLength(3);
    await queue(3, 2);
    expect(await waitingFor(database, id)).toEqual(named(0, 5));
    expect(await getDestination(database, { id, accountId: account_id })).toMatchObject({
      paused_at: expect.any(Date),
      last_failure: "the receiver says 500",
    });
    receiver.answer = () => 200;
    const resumed = await resumeDestination(database, { id, accountId: account_id });
    expect(resumed.paused_at).toBeNull();
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 5));
    expect(receiver.requests.map(({ body }) => body.events.length)).toEqual([3, 3, 3, 3, 2]);
  });

  test("that is paused goes on when it has new settings", async () => {
    const id = await add("old");
    await queue(0, 1);
    receiver.answer = ({ path }) => (path === "/old" ? 401 : 200);
    deliver({ limits: { pauseAfterMs: 1, pauseAfterFailures: 2 } });
    await waitUntil(async () => (await queueOf(id)).paused_at !== null, patient);
    const settings = { url: receiver.url("new"), method: "POST", headers: {} };
    const sealed = testKeeper().seal(settings, { id, account_id });
    const change = { sealed } as Parameters<typeof changeDestination>[2];
    expect(await changeDestination(database, { id, version: 1 }, change)).toMatchObject({ paused_at: null });
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken("new")).toEqual(named(0, 1));
  });

  test("that is deleted gets nothing more, whatever is under way", async () => {
    const id = await add();
    await queue(0, 500);
    const { promise, resolve } = Promise.withResolvers<number>();
    receiver.answer = () => promise;
    const { deliveries } = deliver();
    await waitUntil(() => receiver.requests.length === 1, patient);
    await deleteDestination(database, { id, accountId: account_id });
    resolve(200);
    await waitUntil(() => deliveries.counters.repeatedBatches === 1, patient);
    expect(receiver.requests).toHaveLength(1);
    expect(deliveries.counters.inFlight).toBe(0);
    expect(await log(id).catch((thrown: Error) => thrown.message)).toBe("no such destination");
  });

  test("that is disabled gets nothing, and what waited when it is enabled again", async () => {
    const id = await add();
    await queue(0, 2);
    const change = (enabled: boolean) => ({ enabled }) as Parameters<typeof changeDestination>[2];
    await changeDestination(database, { id, version: 1 }, change(false));
    const other = await add("other");
    await queue(2, 1);
    deliver();
    await waitUntil(() => isEmpty(other), patient);
    expect(receiver.taken()).toEqual([]);
    await changeDestination(database, { id, version: 2 }, change(true));
    await waitUntil(() => isEmpty(id), patient);
    expect(receiver.taken()).toEqual(named(0, 2));
  });

  test("of a type that is not known here any more says so", async () => {
    const id = await add("", { type: "other" });
    await queue(0, 1);
    deliver({ types: new Map() });
    const row = await waitUntil(async () => (await log(id))[0], patient);
    expect(row).toMatchObject({
      status: "retrying",
      response_status: 0,
      cause: "this type of destination is not known any more",
    });
  });

  test("whose settings are of another type says so, and nothing is sent", async () => {
    const id = await add("", { type: "otel-collector" });
    await queue(0, 1);
    deliver({ types: destinationTypes });
    const row = await waitUntil(async () => (await log(id))[0], patient);
    const cause = "the settings can't be read any more; enter them anew";
    expect(row).toMatchObject({ status: "retrying", response_status: 0, cause });
    expect(receiver.requests).toEqual([]);
  });
});

test("stopping lets what is under way end, and begins nothing", async () => {
  const id = await add();
  await queue(0, 200);
  const { promise, resolve } = Promise.withResolvers<number>();
  receiver.answer = () => promise;
  const { deliveries } = deliver();
  await waitUntil(() => receiver.requests.length === 1, patient);
  const stopped = deliveries.stop();
  resolve(200);
  await stopped;
  expect(receiver.taken()).toEqual(named(0, 50));
  expect(await waitingFor(database, id)).toEqual(named(50, 150));
  expect(deliveries.counters).toMatchObject({ inFlight: 0, deliveredBatches: 1, repeatedBatches: 0 });
});

test("a database that is away for a while delays deliveries, no more", async () => {
  const lines: string[] = [];
  const log = createLog({ name: "test", level: "info", destination: { write: (line) => lines.push(line) } });
  const id = await add();
  await queue(0, 3);
  await sql`ALTER TABLE lane RENAME TO away`.execute(database);
  deliver({ log });
  await waitUntil(() => lines.join("").includes("can't be claimed"), patient);
  await sql`ALTER TABLE away RENAME TO lane`.execute(database);
  await waitUntil(() => isEmpty(id), patient);
  expect(receiver.taken()).toEqual(named(0, 3));
  expect(lines.join("")).toContain("deliveries go on");
});
