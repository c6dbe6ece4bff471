import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type OutgoingMessage, PublishError } from "../../../lib/events/bus.ts";
import { endedAtMs, fromEventMessage } from "../../../lib/events/event-message.ts";
import { generationEventsTopic } from "../../../lib/events/topics.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { awayBus } from "../../../test/fakes/away-bus.ts";
import {
  createPayer,
  faultsOfBooks,
  holdRequest,
  type MoneyDatabase,
  moneyOf,
  newGenerationId,
  type Payer,
  realEvent,
  settlementOptions,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import type { AccountDatabase } from "../store.ts";
import { reserveCredit } from "./holds.ts";
import { createMoneyCounters } from "./money-totals.ts";
import { type PublishDueOptions, publishDue } from "./publish-due.ts";
import { settleConsumed, settleReported } from "./settlements.ts";

const holdGraceMs = 300_000;
const unseenGraceMs = 30_000;
const running = new AbortController().signal;
let world: MoneyDatabase;
let database: AccountDatabase;
let payer: Payer;

beforeAll(async () => {
  world = await startMoneyDatabase();
  ({ database } = world);
});
afterAll(() => world.close());
beforeEach(async () => {
  await database.deleteFrom("hold").execute();
  await database.updateTable("account").set({ held_nano_usd: 0n }).execute();
  payer = await createPayer(database, { credit: 10_000n });
});
afterEach(async () => {
  const { rows } = await sql`SELECT FROM hold WHERE (state = 'open' OR (state = 'settled' AND NOT seen))
    AND publish_due_at IS NULL`.execute(database);
  expect(rows).toEqual([]);
});

/** A bus that takes everything, unless `refuses` says that one is never taken. */
class RecordingBus {
  readonly sent: OutgoingMessage[] = [];
  readonly sizes: number[] = [];
  readonly #refuses: (message: OutgoingMessage) => boolean;

  constructor(refuses: (message: OutgoingMessage) => boolean = () => false) {
    this.#refuses = refuses;
  }

  async send(topic: string, messages: readonly OutgoingMessage[]): Promise<void> {
    expect(topic).toBe(generationEventsTopic);
    this.sizes.push(messages.length);
    if (messages.some(this.#refuses)) throw new PublishError("too large");
    this.sent.push(...messages);
  }

  get ids(): (string | undefined)[] {
    return this.sent.map((message) => fromEventMessage(message)?.eventId);
  }
}

function options(bus: PublishDueOptions["bus"], more: Partial<PublishDueOptions> = {}): PublishDueOptions {
  const graces = { holdGraceMs, unseenGraceMs };
  return { database, bus, counters: createMoneyCounters(), log: silentLog, ...graces, ...more };
}

async function hold(deadline = new Date(Date.now() + 3_600_000)): Promise<string> {
  const request = holdRequest(payer, 10n, { deadline });
  expect(await reserveCredit(database, [request], holdGraceMs)).toEqual(["granted"]);
  return request.generationId;
}

async function settledHold(): Promise<string> {
  const id = await hold();
  await settleReported(settlementOptions(database), [realEvent(payer, id, 7n)]);
  return id;
}

/** Lets so much time pass for what waits to be published. */
async function pass(ms: number): Promise<void> {
  const past = sql<Date>`publish_due_at - make_interval(secs => ${ms / 1000})`;
  await database.updateTable("hold").set({ publish_due_at: past }).execute();
}

async function dueInMs(id: string): Promise<number> {
  const { due } = await database
    .selectFrom("hold")
    .select(sql<number>`extract(epoch FROM publish_due_at - now())::float * 1000`.as("due"))
    .where("id", "=", id)
    .executeTakeFirstOrThrow();
  return due;
}

describe("a hold that is open", () => {
  test("beyond its deadline and grace is published as lost at its deadline, and nothing is done to it", async () => {
    const deadline = new Date(Date.now() + 60_000);
    const id = await hold(deadline);
    const bus = new RecordingBus();
    await pass(holdGraceMs);
    await publishDue(options(bus), running);
    expect(bus.ids).toEqual([]);
    await pass(61_000);
    const before = await moneyOf(database, payer);
    await publishDue(options(bus), running);
    const [message] = bus.sent;
    const event = message === undefined ? undefined : fromEventMessage(message);
    expect(event).toMatchObject({ eventId: id, revision: 0, costNanoUsd: 0n, accountId: payer.accountId });
    expect(event === undefined ? 0 : endedAtMs(event)).toBe(deadline.getTime());
    expect(message?.key).toBe(payer.accountId);
    expect(await moneyOf(database, payer)).toEqual(before);
    const row = database.selectFrom("hold").select("state").where("id", "=", id);
    expect(await row.executeTakeFirst()).toEqual({ state: "open" });
    expect(await faultsOfBooks(database)).toEqual([]);
  });

  test.for([
    ["open", hold, [300, 600, 1200, 2400, 3600, 3600]],
    ["unseen", settledHold, [30, 60, 120, 240, 480, 960]],
  ] as const)(
    "or %s is published again and again, at intervals that double up to an hour",
    async ([, make, seconds]) => {
      const id = await make();
      const bus = new RecordingBus();
      for (const [round, interval] of seconds.entries()) {
        await pass(4_000_000);
        await publishDue(options(bus), running);
        expect(bus.sent).toHaveLength(round + 1);
        expect(Math.round((await dueInMs(id)) / 1000 / interval)).toBe(1);
      }
    },
  );
});

describe("a settled hold", () => {
  test("is published with the event that stands until it is consumed", async () => {
    const [id, consumed] = [await settledHold(), await settledHold()];
    const settling = settlementOptions(database);
    await settleConsumed(settling, [realEvent(payer, consumed, 7n)]);
    const bus = new RecordingBus();
    const counters = createMoneyCounters();
    await publishDue(options(bus), running);
    expect(bus.ids).toEqual([]);
    await pass(unseenGraceMs + 1000);
    await publishDue(options(bus, { counters }), running);
    expect(bus.sent.map((message) => fromEventMessage(message))).toEqual([
      expect.objectContaining({ eventId: id, revision: 1, costNanoUsd: 7n }),
    ]);
    expect(counters).toMatchObject({ publishedUnseen: 1, publishedLost: 0 });
    await settleConsumed(settling, [realEvent(payer, id, 7n)]);
    expect(await publishDue(options(bus), running)).toBe(false);
    expect(bus.sent).toHaveLength(1);
  });
});

test("replicas that publish at once share what is due, a bounded part at a time", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 25; count++) ids.push(await hold());
  await pass(4_000_000);
  const bus = new RecordingBus();
  const replica = world.connect();
  const turns = await Promise.all(
    [database, replica].map((pool) => publishDue(options(bus, { database: pool, batchSize: 10 }), running)),
  );
  expect(turns).toEqual([true, true]);
  expect(bus.sent).toHaveLength(20);
  expect(await publishDue(options(bus, { batchSize: 10 }), running)).toBe(false);
  expect(bus.ids.sort()).toEqual(ids.sort());
});

test("what is published is claimed, and the claim committed, before it is sent", async () => {
  const id = await hold();
  await pass(4_000_000);
  const dueWhenSent: number[] = [];
  const bus = { send: async () => void dueWhenSent.push(await dueInMs(id)) };
  await publishDue(options(bus), running);
  expect(dueWhenSent).toEqual([expect.closeTo(holdGraceMs, -5)]);
});

test("a bus that is away changes nothing, and what was due stays due", async () => {
  const [open, settled] = [await hold(), await settledHold()];
  await pass(4_000_000);
  const before = await moneyOf(database, payer);
  const counters = createMoneyCounters();
  for (let round = 0; round < 5; round++) {
    const publishing = publishDue(options(awayBus, { counters, sendTimeoutMs: 1 }), running);
    await expect(publishing).rejects.toThrow();
    for (const id of [open, settled]) expect(await dueInMs(id)).toBeLessThanOrEqual(5000);
    await pass(5000);
  }
  expect(await moneyOf(database, payer)).toEqual(before);
  expect(counters).toEqual(createMoneyCounters());
  const bus = new RecordingBus();
  await publishDue(options(bus, { counters }), running);
  expect(bus.ids.sort()).toEqual([open, settled].sort());
  expect(counters).toMatchObject({ publishedUnseen: 1, publishedLost: 1 });
  expect(await dueInMs(open)).toBeGreaterThan(200_000);
});

test("what was closed while the bus was away is not due again", async () => {
  const id = await hold();
  await pass(4_000_000);
  const bus = {
    async send() {
      await settleConsumed(settlementOptions(database), [realEvent(payer, id, 7n)]);
      throw new Error("away");
    },
  };
  await expect(publishDue(options(bus, { sendTimeoutMs: 50 }), running)).rejects.toThrow();
  const row = database.selectFrom("hold").select(["state", "publish_due_at"]).where("id", "=", id);
  expect(await row.executeTakeFirst()).toEqual({ state: "settled", publish_due_at: null });
});

test("an event that the topic never takes does not hold up the others", async () => {
  const ids: string[] = [];
  for (let count = 0; count < 9; count++) ids.push(await hold());
  await pass(4_000_000);
  const [bad, ...good] = ids;
  const bus = new RecordingBus((message) => fromEventMessage(message)?.eventId === bad);
  const counters = createMoneyCounters();
  await publishDue(options(bus, { counters }), running);
  expect(bus.ids.sort()).toEqual(good.sort());
  expect(counters).toMatchObject({ unpublishable: 1, publishedLost: 8 });
});

test("no more is sent at once than a broker takes", async () => {
  const id = newGenerationId();
  const draft = new Uint8Array(60_000);
  const requests = Array.from({ length: 20 }, (_, index) =>
    holdRequest(payer, 1n, { generationId: `${id}-${index}`, draft }),
  );
  await reserveCredit(database, requests, holdGraceMs);
  await pass(4_000_000);
  const bus = new RecordingBus();
  await publishDue(options(bus), running);
  expect(bus.sizes).toEqual([8, 8, 4]);
});
