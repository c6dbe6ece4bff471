import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import type { Bus } from "../../../lib/events/bus.ts";
import { toEventMessage } from "../../../lib/events/event-message.ts";
import { createPostgresBus } from "../../../lib/events/postgres/postgres-bus.ts";
import { busMigrations } from "../../../lib/events/postgres/postgres-bus-migrations.ts";
import { allTopics, generationEventsTopic } from "../../../lib/events/topics.ts";
import { systemClock } from "../../../lib/runtime/clock.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { sendMessages } from "../../../test/support/kafka/send-messages.ts";
import {
  createPayer,
  faultsOfBooks,
  holdRequest,
  lostEvent,
  type MoneyDatabase,
  moneyOf,
  newGenerationId,
  type Payer,
  realEvent,
  settlementOptions,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import { waitUntil } from "../../../test/support/wait-until.ts";
import { reserveCredit } from "./holds.ts";
import { type MoneyBackground, startMoneyBackground } from "./money-background.ts";
import { createMoneyCounters, type MoneyCounters } from "./money-totals.ts";
import { settleReported } from "./settlements.ts";

const patience = { timeoutMs: 30_000 };
let world: MoneyDatabase;
let bus: Bus;
let payer: Payer;
let counters: MoneyCounters;
let backgrounds: MoneyBackground[];

beforeEach(async () => {
  world = await startMoneyDatabase();
  payer = await createPayer(world.database, { credit: 1000n });
  counters = createMoneyCounters();
  backgrounds = [];
  bus = createPostgresBus({ url: world.url, log: silentLog });
});
afterEach(async () => {
  await Promise.all(backgrounds.map((background) => background.stop()));
  await bus.close();
  expect(await faultsOfBooks(world.database)).toEqual([]);
  await world.close();
});

/** From now on there is a bus with its topics. */
async function bringBus(): Promise<void> {
  const database = connectDatabase({ url: world.url, schema: "bus", log: silentLog, maxConnections: 1 });
  await migrateToLatest(database, busMigrations);
  await database.destroy();
  const topics = allTopics({ partitions: 2, replication: 1, retentionMs: 86_400_000 });
  await bus.ensureTopics(topics, AbortSignal.timeout(10_000));
}

/** A replica that waits for nothing before it publishes. */
function startReplica(): void {
  const { database, log } = settlementOptions(world.connect());
  const graces = { holdGraceMs: 1, unseenGraceMs: 1 };
  backgrounds.push(
    startMoneyBackground({ database, counters, log, bus, clock: systemClock, retentionDays: 400, ...graces }),
  );
}

async function hold(): Promise<string> {
  const request = holdRequest(payer, 100n);
  expect(await reserveCredit(world.database, [request], 1)).toEqual(["granted"]);
  return request.generationId;
}

/** A hold whose deadline and grace are over. */
async function overdueHold(): Promise<string> {
  const id = await hold();
  await world.database
    .updateTable("hold")
    .set({ publish_due_at: new Date(0) })
    .where("id", "=", id)
    .execute();
  return id;
}

function report(id: string, cost: bigint) {
  const settling = { ...settlementOptions(world.database), unseenGraceMs: 1 };
  return settleReported(settling, [realEvent(payer, id, cost)]);
}

function publish(...events: Parameters<typeof toEventMessage>[0][]): Promise<void> {
  return sendMessages(bus, generationEventsTopic, events.map(toEventMessage), AbortSignal.timeout(10_000));
}

async function holdOf(id: string) {
  const rows = world.database.selectFrom("hold").select(["state", "seen", "cost_nano_usd as cost"]);
  return rows.where("id", "=", id).executeTakeFirst();
}

function becomes(id: string, expected: object): Promise<unknown> {
  return waitUntil(async () => {
    expect(await holdOf(id)).toMatchObject(expected);
    return true;
  }, patience);
}

describe("over two replicas", { timeout: 60_000 }, () => {
  beforeEach(async () => {
    await bringBus();
    for (let count = 0; count < 2; count++) startReplica();
  });

  test("a request whose process died is lost, and charged when its event comes after all", async () => {
    const id = await overdueHold();
    await becomes(id, { state: "lost", seen: true });
    expect(await moneyOf(world.database, payer)).toEqual({ balance: 1000n, held: 0n, charged: 0n });
    await publish(realEvent(payer, id, 70n), lostEvent(payer, id, new Date()));
    await becomes(id, { state: "settled", seen: true, cost: 70n });
    expect(await moneyOf(world.database, payer)).toEqual({ balance: 930n, held: 0n, charged: 70n });
    expect(counters.lateRealNanoUsd).toBe(70n);
    expect(counters.publishedLost).toBeGreaterThan(0);
  });

  test("a request that was settled and never published is published from here", async () => {
    const id = await hold();
    await report(id, 70n);
    await becomes(id, { state: "settled", seen: true });
    expect(counters.publishedUnseen).toBeGreaterThan(0);
  });

  test("a request that was published and never settled is settled, copies and all", async () => {
    const [id, other] = [await hold(), await hold()];
    const event = realEvent(payer, id, 70n);
    await publish(event, event, realEvent(payer, other, 5n), event);
    await becomes(other, { state: "settled", seen: true });
    await becomes(id, { state: "settled", seen: true });
    expect(await moneyOf(world.database, payer)).toEqual({ balance: 925n, held: 0n, charged: 75n });
  });

  test("an event without a hold is charged to nobody and waits with the dead letters, behind it all goes on", async () => {
    const [id, unknown] = [await hold(), newGenerationId()];
    const old = realEvent(payer, newGenerationId(), 5n, { endedMs: Date.now() - 400 * 86_400_000 });
    await publish(realEvent(payer, unknown, 5n), old, realEvent(payer, id, 70n));
    await becomes(id, { state: "settled", seen: true });
    const deadLettered = () => backgrounds.reduce((sum, { consumer }) => sum + consumer.deadLettered, 0);
    await waitUntil(() => deadLettered() >= 2, patience);
    expect(counters).toMatchObject({ unknownHolds: 1 });
    expect(await holdOf(unknown)).toBeUndefined();
    expect(await moneyOf(world.database, payer)).toMatchObject({ charged: 70n });
  });
});

test("a bus that is away for long frees nothing and charges nothing; when it is there all is caught up", async () => {
  const [open, settled] = [await overdueHold(), await hold()];
  await report(settled, 70n);
  startReplica();
  startReplica();
  await waitUntil(async () => {
    const due = world.database.selectFrom("hold").select("id").where("publish_due_at", ">", new Date());
    return (await due.where("publish_count", "=", 0).execute()).length === 2;
  }, patience);
  expect(await holdOf(open)).toMatchObject({ state: "open" });
  expect(await holdOf(settled)).toMatchObject({ state: "settled", seen: false });
  expect(await moneyOf(world.database, payer)).toEqual({ balance: 930n, held: 100n, charged: 70n });
  expect(backgrounds.map(({ consumer }) => consumer.connected)).toEqual([false, false]);
  await bringBus();
  await becomes(open, { state: "lost", seen: true });
  await becomes(settled, { state: "settled", seen: true });
  expect(await moneyOf(world.database, payer)).toEqual({ balance: 930n, held: 0n, charged: 70n });
}, 90_000);
