import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  createPayer,
  faultsOfBooks,
  holdRequest,
  keyMoneyOf,
  lostEvent,
  type MoneyDatabase,
  moneyOf,
  newGenerationId,
  type Payer,
  realEvent,
  settlementOptions,
  shiftDays,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import type { AccountDatabase } from "../store.ts";
import { releaseHolds, reserveCredit } from "./holds.ts";
import { readMoneyTotals } from "./money-totals.ts";
import {
  applyEvents,
  maxNanoUsd,
  type SettlementOptions,
  settleConsumed,
  settlementFault,
  settleReported,
} from "./settlements.ts";

const graceMs = 300_000;
let world: MoneyDatabase;
let database: AccountDatabase;
let payer: Payer;
let settling: SettlementOptions;

beforeAll(async () => {
  world = await startMoneyDatabase();
  ({ database } = world);
});
afterAll(() => world.close());
beforeEach(async () => {
  payer = await createPayer(database, { credit: 1000n });
  settling = settlementOptions(database);
});
afterEach(async () => expect(await faultsOfBooks(database)).toEqual([]));

/** A hold that is open, by its id. */
async function hold(amount: bigint): Promise<string> {
  const request = holdRequest(payer, amount);
  expect(await reserveCredit(database, [request], graceMs)).toEqual(["granted"]);
  return request.generationId;
}

function holdOf(id: string) {
  return database
    .selectFrom("hold")
    .select(["state", "revision", "seen", "cost_nano_usd as cost", "publish_due_at as dueAt"])
    .where("id", "=", id)
    .executeTakeFirst();
}

const real = (id: string, cost: bigint) => realEvent(payer, id, cost);
const lost = (id: string) => lostEvent(payer, id, new Date());

describe("an event of an open hold", () => {
  test("that was reported frees it, debits its cost and waits to be seen on the topic", async () => {
    const id = await hold(100n);
    expect(await settleReported(settling, [real(id, 70n)])).toEqual(["stored"]);
    expect(await moneyOf(database, payer)).toEqual({ balance: 930n, held: 0n, charged: 70n });
    expect(await holdOf(id)).toMatchObject({ state: "settled", revision: 1, seen: false, cost: 70n });
    expect(await settleConsumed(settling, [real(id, 70n)])).toEqual(["stored"]);
    expect(await holdOf(id)).toMatchObject({ state: "settled", seen: true, dueAt: null });
  });

  test("that was consumed first is seen, and stays so when it is reported after", async () => {
    const id = await hold(100n);
    expect(await settleConsumed(settling, [real(id, 70n)])).toEqual(["stored"]);
    expect(await settleReported(settling, [real(id, 70n)])).toEqual(["stored"]);
    expect(await holdOf(id)).toMatchObject({ state: "settled", seen: true, dueAt: null });
    expect(await moneyOf(database, payer)).toEqual({ balance: 930n, held: 0n, charged: 70n });
  });

  test("is counted on the day that it was held on, whenever it comes", async () => {
    const ids = [await hold(100n), await hold(10n), await hold(1n)];
    await shiftDays(database, payer, -40);
    await settleReported(settling, [real(ids[0] ?? "", 70n)]);
    await releaseHolds(database, [{ generationId: ids[1] ?? "", accountId: payer.accountId }]);
    const { days } = await keyMoneyOf(database, payer);
    expect(days).toEqual([{ day: expect.any(String), held: 1n, spent: 70n, byok: 0n }]);
  });

  test("is debited whole where it cost more, and the excess is counted", async () => {
    const id = await hold(100n);
    await settleReported(settling, [real(id, 1300n)]);
    expect(await moneyOf(database, payer)).toEqual({ balance: -300n, held: 0n, charged: 1300n });
    expect(settling.counters).toMatchObject({ overRunNanoUsd: 1200n, lateRealNanoUsd: 0n });
  });

  test("that cost nothing writes nothing to the ledger", async () => {
    const id = await hold(100n);
    await settleReported(settling, [real(id, 0n)]);
    const entries = database.selectFrom("ledger_entry").selectAll().where("generation_id", "=", id);
    expect(await entries.execute()).toEqual([]);
  });
});

describe("a lost request", () => {
  test("frees its hold and is charged nothing", async () => {
    const id = await hold(100n);
    expect(await settleConsumed(settling, [lost(id)])).toEqual(["stored"]);
    expect(await moneyOf(database, payer)).toEqual({ balance: 1000n, held: 0n, charged: 0n });
    expect(await holdOf(id)).toMatchObject({ state: "lost", revision: 0, seen: true, dueAt: null });
  });

  test.for([
    ["consumed", settleConsumed],
    ["reported", settleReported],
  ] as const)(
    "whose event is %s after all is debited once, and the amount is counted",
    async ([how, settle]) => {
      const id = await hold(100n);
      await settleConsumed(settling, [lost(id)]);
      for (let copies = 0; copies < 2; copies++) {
        expect(await settle(settling, [real(id, 70n)])).toEqual(["stored"]);
        expect(await settleConsumed(settling, [lost(id)])).toEqual(["stored"]);
      }
      expect(await moneyOf(database, payer)).toEqual({ balance: 930n, held: 0n, charged: 70n });
      expect(await holdOf(id)).toMatchObject({ state: "settled", revision: 1, seen: how === "consumed" });
      expect(settling.counters).toMatchObject({ overRunNanoUsd: 0n, lateRealNanoUsd: 70n });
    },
  );

  test("that was settled before is not seen by its lost event", async () => {
    const id = await hold(100n);
    await settleReported(settling, [real(id, 70n)]);
    expect(await settleConsumed(settling, [lost(id)])).toEqual(["stored"]);
    expect(await holdOf(id)).toMatchObject({ state: "settled", seen: false, dueAt: expect.any(Date) });
  });

  test("that was released after its lost event was sent is lost: others read that event too", async () => {
    const id = await hold(100n);
    await releaseHolds(database, [{ generationId: id, accountId: payer.accountId }]);
    for (let copies = 0; copies < 2; copies++) {
      expect(await settleConsumed(settling, [lost(id)])).toEqual(["stored"]);
      expect(await holdOf(id)).toEqual({ state: "lost", revision: 0, seen: true, cost: 0n, dueAt: null });
      expect(await moneyOf(database, payer)).toEqual({ balance: 1000n, held: 0n, charged: 0n });
    }
  });

  test("that was released before anybody held credit for it stays released", async () => {
    const id = newGenerationId();
    await releaseHolds(database, [{ generationId: id, accountId: payer.accountId }]);
    await settleConsumed(settling, [lost(id)]);
    expect(await holdOf(id)).toMatchObject({ state: "released", revision: null });
  });

  test("is not freed by whoever reports it", async () => {
    const id = await hold(100n);
    await settleReported(settling, [lost(id)]);
    expect(await holdOf(id)).toMatchObject({ state: "open" });
  });
});

describe("a batch of events", () => {
  test.for([
    ["lost, real", ["lost", "real"]],
    ["real, lost", ["real", "lost"]],
    ["copies", ["real", "real", "lost", "lost", "real"]],
  ] as const)("may have an id many times: %s", async ([, kinds]) => {
    const [id, other] = [await hold(100n), await hold(50n)];
    const events = kinds.map((kind) => (kind === "real" ? real(id, 70n) : lost(id)));
    const outcomes = await settleConsumed(settling, [real(other, 5n), ...events]);
    expect(outcomes).toEqual(["stored", ...kinds.map(() => "stored")]);
    expect(await moneyOf(database, payer)).toEqual({ balance: 925n, held: 0n, charged: 75n });
    expect(await holdOf(id)).toMatchObject({ state: "settled", seen: true, cost: 70n });
  });

  test("answers each event in its place", async () => {
    const [released, settled] = [await hold(1n), await hold(1n)];
    await releaseHolds(database, [{ generationId: released, accountId: payer.accountId }]);
    const unknown = newGenerationId();
    const other = await createPayer(database, { credit: 10n });
    const events = [real(unknown, 1n), real(settled, 1n), real(released, 1n), realEvent(other, settled, 9n)];
    expect(await settleReported(settling, events)).toEqual(["unknown", "stored", "closed", "unknown"]);
    expect(await settleReported(settling, events.toReversed())).toEqual([
      "unknown",
      "closed",
      "stored",
      "unknown",
    ]);
    expect(settling.counters).toMatchObject({ unknownHolds: 4, closedHoldEvents: 2 });
    expect(await moneyOf(database, other)).toEqual({ balance: 10n, held: 0n, charged: 0n });
    expect(await holdOf(unknown)).toBeUndefined();
  });

  test("that was read leaves what can't be applied to the dead letters", async () => {
    const [released, settled] = [await hold(1n), await hold(1n)];
    await releaseHolds(database, [{ generationId: released, accountId: payer.accountId }]);
    const unknown = newGenerationId();
    const events = [lost(unknown), real(settled, 1n), real(released, 1n), lost(released), real(settled, -1n)];
    expect(await applyEvents(settling, events)).toEqual([
      { eventId: unknown, revision: 0, reason: "no hold has this id" },
      { eventId: released, revision: 1, reason: "the hold of this id was refused or released" },
      { eventId: settled, revision: 1, reason: "a price is negative" },
    ]);
    expect(await moneyOf(database, payer)).toEqual({ balance: 999n, held: 0n, charged: 1n });
  });
});

test("the totals count the holds that are open and unseen", async () => {
  const before = await readMoneyTotals(database, settling.counters);
  const [, reported, consumed] = [await hold(1n), await hold(1n), await hold(1n)];
  await settleReported(settling, [real(reported, 1n)]);
  await settleConsumed(settling, [real(consumed, 1n)]);
  const { openHolds, unseenHolds } = await readMoneyTotals(database, settling.counters);
  expect([openHolds - before.openHolds, unseenHolds - before.unseenHolds]).toEqual([1, 1]);
});

test("the totals say how old what is unseen is, and which holds no process has ended in time", async () => {
  const [late, reported] = [await hold(1n), await hold(1n)];
  await settleReported(settling, [real(reported, 1n)]);
  const before = await readMoneyTotals(database, settling.counters);
  await sql`UPDATE hold SET publish_due_at = now() WHERE id = ${late}`.execute(database);
  await sql`UPDATE hold SET closed_at = now() - interval '1 hour' WHERE id = ${reported}`.execute(database);
  const { overdueHolds, oldestUnseenS } = await readMoneyTotals(database, settling.counters);
  expect(overdueHolds - before.overdueHolds).toBe(1);
  expect(oldestUnseenS).toBeGreaterThanOrEqual(3600);
  expect(before.oldestUnseenS).toBeLessThan(3600);
  // Its next time lies ahead once it was published; it is overdue all the same.
  await sql`UPDATE hold SET publish_due_at = now() + interval '1 hour', publish_count = 1 WHERE id = ${late}`.execute(
    database,
  );
  const published = await readMoneyTotals(database, settling.counters);
  expect(published.overdueHolds - before.overdueHolds).toBe(1);
});

describe("an event can't be settled", () => {
  const nowMs = Date.now();
  const id = newGenerationId();
  const someone = { accountId: "0f9d1b6e-3a52-4c7b-9c52-5a6f0d6f7a10", keyHash: "0".repeat(64) };
  const event = realEvent(someone, id, maxNanoUsd, { endedMs: nowMs });

  test("for no fault of its own", () => expect(settlementFault(event, nowMs)).toBeUndefined());

  test.for([
    ["that is malformed", { ...event, keyHash: "x" }, "key_hash is no SHA-256"],
    [
      "that costs more than a million dollars",
      { ...event, costNanoUsd: maxNanoUsd + 1n },
      "a price is out of range",
    ],
    ["with such a list price", { ...event, listPriceNanoUsd: maxNanoUsd + 1n }, "a price is out of range"],
    ["that is too large for the topic", { ...event, trace: { text: "x".repeat(65_536) } }, "is too large"],
  ] as const)("%s", ([, faulty, fault]) => expect(settlementFault(faulty, nowMs)).toBe(fault));

  test("that ended before what is remembered", () => {
    expect(settlementFault(event, nowMs + 1)).toBe("ended before what is remembered");
  });
});
