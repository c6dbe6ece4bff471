import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { silentLog } from "../../../lib/runtime/log.ts";
import { readMasterKeys } from "../../../lib/secrets/master-keys.ts";
import { createSealer } from "../../../lib/secrets/seal.ts";
import {
  createTestDestinationDatabase,
  type TestDestinationDatabase,
} from "../../../test/support/services/destination-database.ts";
import { startTestReceiver, type TestReceiver } from "../../../test/support/services/destination-receiver.ts";
import {
  addDestination,
  age,
  queueEvents,
  quickLimits,
  startReplica,
  testKeeper,
  testKeyText,
  waitingFor,
} from "../../../test/support/services/destination-replica.ts";
import { plainTypes } from "../../../test/support/services/destination-type.ts";
import { testUuid, usageEvent } from "../../../test/support/services/usage-events.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { deleteDestination, listDeliveries } from "../settings/destinations.ts";
import type { DestinationDatabase } from "../store.ts";
import { claimBatches } from "./claim.ts";
import { giveUpStep } from "./give-up.ts";
import { type Housekeeping, startHousekeeping } from "./housekeeping.ts";

const patient = { timeoutMs: 25_000 };
const hourMs = 3_600_000;
const account_id = testUuid(1);
let testDatabase: TestDestinationDatabase;
let database: DestinationDatabase;
let receiver: TestReceiver;
let housekeeping: Housekeeping | undefined;
let eventCount = 0;

beforeAll(async () => {
  testDatabase = await createTestDestinationDatabase();
  ({ database } = testDatabase);
});
afterAll(() => testDatabase.close());

beforeEach(async () => {
  await sql`TRUNCATE pending, known_event, delivery, lane, destination`.execute(database);
  receiver = await startTestReceiver();
});
afterEach(async () => {
  await housekeeping?.stop();
  housekeeping = undefined;
  await receiver.close();
});

const add = (fields = {}) => addDestination(database, { account_id, url: receiver.url(), ...fields });

async function queue(count: number): Promise<string[]> {
  const events = Array.from({ length: count }, () =>
    usageEvent({ eventId: `gen-tts-${++eventCount}`, accountId: account_id }),
  );
  await queueEvents(database, ...events);
  return events.map(({ eventId }) => `${eventId}/1`);
}

function keepHouse(keeper = testKeeper(), limits = quickLimits): Housekeeping {
  housekeeping = startHousekeeping({ database, keeper, limits, retentionDays: 10, log: silentLog });
  return housekeeping;
}

async function log(id: string) {
  const { rows } = await listDeliveries(database, { id, accountId: account_id }, { offset: 0, limit: 100 });
  return rows;
}

const claim = (leaseMs = 60_000) =>
  claimBatches({
    database,
    limits: { ...quickLimits, leaseMs },
    healthy: 10,
    failing: 10,
    maxBatchEvents: () => 2,
  });

describe("what has waited for a day", () => {
  test("is given up, in what is paused or disabled too, and logged", async () => {
    const paused = await add();
    const disabled = await add();
    await queue(3);
    await sql`UPDATE lane SET paused_at = now(), last_failure = 'no', due_at = now() WHERE destination_id = ${paused}`.execute(
      database,
    );
    await sql`UPDATE lane SET enabled = false WHERE destination_id = ${disabled}`.execute(database);
    for (const id of [paused, disabled]) await age(database, id, 25 * hourMs);
    const young = await queue(1);
    const keeper = keepHouse();
    await waitUntil(() => keeper.givenUpEvents === 6, patient);
    expect(await waitingFor(database, paused)).toEqual(young);
    expect(await waitingFor(database, disabled)).toEqual([]);
    expect(await log(paused)).toMatchObject([
      { status: "dead", event_count: 3, attempt: 0, response_status: 0, cause: "no" },
    ]);
    const queues = await database.selectFrom("lane").select(["destination_id", "due_at"]).execute();
    const due = new Map(queues.map(({ destination_id, due_at }) => [destination_id, due_at !== null]));
    expect([due.get(paused), due.get(disabled)]).toEqual([true, false]);
  });

  test("is given up as the batch that it is in, once the newest of it has", async () => {
    const id = await add();
    const events = await queue(1);
    await age(database, id, 25 * hourMs);
    events.push(...(await queue(2)));
    receiver.answer = () => 500;
    const replica = startReplica({ database });
    await waitUntil(() => receiver.requests.length >= 2, patient);
    await replica.stop();
    const batch = receiver.requests[0]?.body;
    expect(batch?.events).toHaveLength(3);
    expect(await giveUpStep(database, quickLimits)).toEqual([]);
    expect(await waitingFor(database, id)).toEqual(events);
    await age(database, id, 25 * hourMs);
    const rest = await queue(1);
    expect(await giveUpStep(database, quickLimits)).toEqual([{ destinationId: id, eventCount: 3 }]);
    expect(await waitingFor(database, id)).toEqual(rest);
    const [dead, failed] = await log(id);
    expect(dead).toMatchObject({ status: "dead", event_count: 3, cause: "the receiver says 500" });
    expect([dead?.batch_id, dead?.attempt]).toEqual([batch?.id, failed?.attempt]);
    receiver.answer = () => 200;
    const next = startReplica({ database });
    await waitUntil(async () => (await waitingFor(database, id)).length === 0, patient);
    await next.stop();
    expect(receiver.taken()).toEqual(rest);
  });

  test("is left alone while it is being sent", async () => {
    const id = await add();
    await queue(2);
    await claim();
    await age(database, id, 25 * hourMs);
    expect(await giveUpStep(database, quickLimits)).toEqual([]);
    await sql`UPDATE lane SET due_at = now() WHERE destination_id = ${id}`.execute(database);
    expect(await giveUpStep(database, quickLimits)).toEqual([{ destinationId: id, eventCount: 2 }]);
  });
});

test("what a deleted destination left is deleted", async () => {
  const id = await add();
  const other = await add();
  const events = await queue(3);
  const [batch] = (await claim()).batches;
  expect(batch?.events).toHaveLength(2);
  await sql`INSERT INTO delivery (destination_id, sequence, batch_id, status, attempt, event_count, response_status,
      latency_ms, cause) VALUES (${id}, 1, ${id}, 'delivered', 1, 1, 200, 1, '')`.execute(database);
  await deleteDestination(database, { id, accountId: account_id });
  const kept = await database.selectFrom("destination").select(["sealed"]).where("id", "=", id).execute();
  expect(kept).toEqual([{ sealed: null }]);
  keepHouse();
  await waitUntil(async () => {
    const row = await database
      .selectFrom("destination")
      .select("purged_at")
      .where("id", "=", id)
      .executeTakeFirst();
    return row?.purged_at;
  }, patient);
  expect(await waitingFor(database, id)).toEqual([]);
  expect(await waitingFor(database, other)).toEqual(events);
  expect(await database.selectFrom("delivery").selectAll().execute()).toEqual([]);
});

test("the log and the memory of events end where they should", async () => {
  const id = await add();
  const [first = ""] = await queue(1);
  await queue(1);
  await sql`UPDATE known_event SET ended_at = now() - make_interval(days => CASE event_id
    WHEN ${first.split("/")[0]} THEN 11 ELSE 9 END)`.execute(database);
  for (const [sequence, days] of [
    [1, 8],
    [2, 6],
  ]) {
    await sql`INSERT INTO delivery (destination_id, sequence, batch_id, status, attempt, event_count, response_status,
      latency_ms, cause, attempted_at) VALUES (${id}, ${sequence}, ${id}, 'delivered', 1, 1, 200, 1, '',
      now() - make_interval(days => ${days}))`.execute(database);
  }
  keepHouse();
  await waitUntil(async () => (await log(id)).length === 1, patient);
  expect(await log(id)).toMatchObject([{ sequence: 2n }]);
  await waitUntil(async () => {
    const known = await database.selectFrom("known_event").select("event_id").execute();
    return known.length === 1 && known[0]?.event_id !== first.split("/")[0];
  }, patient);
});

test("the log of a destination keeps the newest", async () => {
  const id = await add();
  await queue(30);
  const types = new Map([...plainTypes].map(([slug, type]) => [slug, { ...type, maxBatchEvents: 2 }]));
  const replica = startReplica({ database, types, limits: { keptDeliveries: 4 } });
  await waitUntil(async () => (await waitingFor(database, id)).length === 0, patient);
  await replica.stop();
  expect((await log(id)).map(({ sequence }) => sequence)).toEqual([15n, 14n, 13n, 12n]);
});

test("settings that an older key sealed are sealed anew", async () => {
  const id = await add({ config: { token: "secret-of-old" } });
  const sealer = createSealer(readMasterKeys(`new:${Buffer.alloc(32, 8).toString("base64")},${testKeyText}`));
  const keeper = testKeeper(plainTypes, sealer);
  keepHouse(keeper);
  const row = await waitUntil(async () => {
    const { sealed, ...bound } = await database
      .selectFrom("destination")
      .select(["id", "account_id", "sealed"])
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    return sealed !== null && sealer.keyIdOf(sealed) === "new" ? { ...bound, sealed } : undefined;
  }, patient);
  expect(keeper.open(row)).toMatchObject({ token: "secret-of-old" });
});
