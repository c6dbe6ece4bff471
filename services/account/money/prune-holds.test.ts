import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createPayer,
  holdRequest,
  lostEvent,
  type MoneyDatabase,
  moneyOf,
  newGenerationId,
  realEvent,
  settlementOptions,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import { releaseHolds, reserveCredit } from "./holds.ts";
import { pruneHolds } from "./money-background.ts";
import { createMoneyCounters } from "./money-totals.ts";
import { settleConsumed, settleReported } from "./settlements.ts";

const retentionDays = 400;
let world: MoneyDatabase;

beforeAll(async () => {
  world = await startMoneyDatabase();
});
afterAll(() => world.close());

test("what is closed and seen is deleted after its retention, a bounded part at a time, and nothing else", async () => {
  const { database } = world;
  const payer = await createPayer(database, { credit: 1000n });
  const make = async (amount = 10n) => {
    const request = holdRequest(payer, amount);
    await reserveCredit(database, [request], 1000);
    return request.generationId;
  };
  const settling = settlementOptions(database);
  const [open, unseen, seen, lost, released] = [
    await make(),
    await make(),
    await make(),
    await make(),
    await make(),
  ];
  await settleReported(settling, [realEvent(payer, unseen, 1n)]);
  await settleConsumed(settling, [realEvent(payer, seen, 1n), lostEvent(payer, lost, new Date())]);
  const unheard = newGenerationId();
  const names = [released, unheard].map((generationId) => ({ generationId, accountId: payer.accountId }));
  await releaseHolds(database, names);
  const refused = await make(10_000n);
  const settledLate = await make();
  await settleConsumed(settling, [realEvent(payer, settledLate, 1n)]);

  const age = async (days: number) => {
    const back = sql<Date>`deadline - make_interval(days => ${days})`;
    const closedBack = sql<Date>`closed_at - make_interval(days => ${days})`;
    await database.updateTable("hold").set({ deadline: back }).execute();
    await database
      .updateTable("hold")
      .set({ closed_at: closedBack })
      .where("id", "<>", settledLate)
      .execute();
  };
  const counters = createMoneyCounters();
  const prune = () => pruneHolds({ database, counters, retentionDays, batchSize: 3 });
  const left = async () => (await database.selectFrom("hold").select("id").execute()).map(({ id }) => id);
  await age(retentionDays + 1);
  expect(await prune()).toBe(false);
  expect(await left()).toHaveLength(8);
  await age(2);
  expect(await prune()).toBe(true);
  expect(await left()).toHaveLength(5);
  expect(await prune()).toBe(false);
  expect((await left()).sort()).toEqual([open, unseen, settledLate].sort());
  expect(counters.prunedHolds).toBe([seen, lost, released, unheard, refused].length);
  expect(await moneyOf(database, payer)).toEqual({ balance: 997n, held: 10n, charged: 3n });
  expect(await settleReported(settling, [realEvent(payer, seen, 1n)])).toEqual(["unknown"]);
});
