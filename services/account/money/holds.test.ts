import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  addKey,
  createPayer,
  faultsOfBooks,
  holdRequest,
  keyMoneyOf,
  type MoneyDatabase,
  moneyOf,
  type Payer,
  realEvent,
  settlementOptions,
  shiftDays,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import type { AccountDatabase } from "../store.ts";
import { type HoldRequest, listHolds, releaseHolds, reserveCredit } from "./holds.ts";
import { settleReported } from "./settlements.ts";

const graceMs = 300_000;
const never = new AbortController().signal;
const nobody = "00000000-0000-4000-8000-000000000000";
let world: MoneyDatabase;
let database: AccountDatabase;

beforeAll(async () => {
  world = await startMoneyDatabase();
  ({ database } = world);
});
afterAll(() => world.close());
afterEach(async () => expect(await faultsOfBooks(database)).toEqual([]));

function reserve(...requests: HoldRequest[]) {
  return reserveCredit(database, requests, graceMs);
}

async function heldBy(payer: Payer): Promise<bigint> {
  return (await moneyOf(database, payer)).held;
}

describe("a reservation", () => {
  test("is granted until balance less holds is short, each in its order, a small one after a large one too", async () => {
    const payer = await createPayer(database, { credit: 100n });
    const amounts = [60n, 50n, 40n, 1n, 0n];
    const requests = amounts.map((amount) => holdRequest(payer, amount));
    const decisions = ["granted", "credits", "granted", "credits", "granted"];
    expect(await reserve(...requests)).toEqual(decisions);
    expect(await moneyOf(database, payer)).toEqual({ balance: 100n, held: 100n, charged: 0n });
    const { line } = await keyMoneyOf(database, payer);
    expect(line).toEqual({ held: 100n, spent: 0n, byok: 0n });
  });

  test("answers a copy as it answered before, whatever became of the balance", async () => {
    const payer = await createPayer(database, { credit: 10n });
    const [granted, refused] = [holdRequest(payer, 10n), holdRequest(payer, 5n)];
    expect(await reserve(granted, refused)).toEqual(["granted", "credits"]);
    await releaseHolds(database, [holdRequest(payer, 0n)]);
    expect(await reserve(refused, granted)).toEqual(["credits", "granted"]);
    await settleReported(settlementOptions(database), [realEvent(payer, granted.generationId, 0n)]);
    expect(await reserve(refused, granted)).toEqual(["credits", "closed"]);
    expect(await heldBy(payer)).toBe(0n);
  });

  test("of an id that was released is refused for good", async () => {
    const payer = await createPayer(database, { credit: 10n });
    const [unheard, open] = [holdRequest(payer, 1n), holdRequest(payer, 1n)];
    expect(await reserve(open)).toEqual(["granted"]);
    for (let copies = 0; copies < 2; copies++) await releaseHolds(database, [unheard, open]);
    expect(await reserve(unheard, open)).toEqual(["closed", "closed"]);
    expect(await heldBy(payer)).toBe(0n);
  });

  test("whose deadline has passed by the database's clock is refused, and its copy too", async () => {
    const payer = await createPayer(database, { credit: 10n });
    const late = holdRequest(payer, 1n, { deadline: new Date(Date.now() - 60_000) });
    expect(await reserve(late, holdRequest(payer, 10n))).toEqual(["too_late", "granted"]);
    const inTime = { ...late, deadline: new Date(Date.now() + 60_000) };
    expect(await reserve(inTime)).toEqual(["too_late"]);
  });

  test("of an id that another account holds is refused and leaves that alone", async () => {
    const [owner, other] = [
      await createPayer(database, { credit: 9n }),
      await createPayer(database, { credit: 9n }),
    ];
    const request = holdRequest(owner, 5n);
    expect(await reserve(request)).toEqual(["granted"]);
    expect(await reserve(holdRequest(other, 5n, { generationId: request.generationId }))).toEqual(["closed"]);
    await releaseHolds(database, [{ generationId: request.generationId, accountId: other.accountId }]);
    expect([await heldBy(owner), await heldBy(other)]).toEqual([5n, 0n]);
  });

  test("of what does not exist is refused without spoiling its batch", async () => {
    const payer = await createPayer(database, { credit: 10n });
    const other = await createPayer(database, { credit: 10n });
    const batch = [
      holdRequest({ ...payer, accountId: nobody }, 1n),
      holdRequest({ ...payer, keyHash: "0".repeat(64) }, 1n),
      holdRequest({ ...payer, keyHash: other.keyHash }, 1n),
      holdRequest(payer, 10n),
    ];
    expect(await reserve(...batch)).toEqual(["credits", "credits", "credits", "granted"]);
    expect(await reserve(...batch)).toEqual(["credits", "credits", "credits", "granted"]);
    expect(await heldBy(other)).toBe(0n);
  });

  test("of no credit is held too, but not on a balance below zero", async () => {
    const payer = await createPayer(database);
    const free = holdRequest(payer, 0n);
    expect(await reserve(free)).toEqual(["granted"]);
    await settleReported(settlementOptions(database), [realEvent(payer, free.generationId, 3n)]);
    expect(await moneyOf(database, payer)).toEqual({ balance: -3n, held: 0n, charged: 3n });
    expect(await reserve(holdRequest(payer, 0n))).toEqual(["credits"]);
  });

  test("is durable even where sessions do without", async () => {
    const payer = await createPayer(database, { credit: 10n });
    await database.transaction().execute(async (transaction) => {
      await sql`SET LOCAL synchronous_commit = off`.execute(transaction);
      await reserveCredit(transaction, [holdRequest(payer, 1n)], graceMs);
      const { rows } = await sql`SHOW synchronous_commit`.execute(transaction);
      expect(rows).toEqual([{ synchronous_commit: "on" }]);
    });
  });
});

describe("a key's limit", () => {
  test("counts held and spent of its whole line, and refuses what would pass it by a nano", async () => {
    const payer = await createPayer(database, { credit: 1000n, limit: 100n });
    const [first, second] = [holdRequest(payer, 60n), holdRequest(payer, 41n)];
    expect(await reserve(first, second, holdRequest(payer, 40n))).toEqual([
      "granted",
      "key_limit",
      "granted",
    ]);
    await settleReported(settlementOptions(database), [realEvent(payer, first.generationId, 30n)]);
    const successor = await addKey(database, payer.accountId, { limit: 100n, rateBucket: payer.rateBucket });
    const succeeding = { ...payer, keyHash: successor };
    expect(await reserve(holdRequest(succeeding, 31n), holdRequest(succeeding, 30n))).toEqual([
      "key_limit",
      "granted",
    ]);
    const unlimited = await addKey(database, payer.accountId);
    expect(await reserve(holdRequest({ ...payer, keyHash: unlimited }, 800n))).toEqual(["granted"]);
  });

  test.for([
    ["daily", 0, -1],
    ["weekly", -((new Date().getUTCDay() + 6) % 7), -((new Date().getUTCDay() + 6) % 7) - 1],
    ["monthly", 1 - new Date().getUTCDate(), -new Date().getUTCDate()],
    [undefined, -4000, undefined],
  ] as const)(
    "that is %s counts the days since its period began (%d), and none before",
    async ([limitReset, first, before]) => {
      const reset = limitReset === undefined ? {} : { limitReset };
      const payer = await createPayer(database, { credit: 1000n, limit: 100n, ...reset });
      expect(await reserve(holdRequest(payer, 100n))).toEqual(["granted"]);
      await shiftDays(database, payer, first);
      expect(await reserve(holdRequest(payer, 1n))).toEqual(["key_limit"]);
      if (before === undefined) return;
      await shiftDays(database, payer, before - first);
      expect(await reserve(holdRequest(payer, 101n), holdRequest(payer, 100n))).toEqual([
        "key_limit",
        "granted",
      ]);
    },
  );

  test("counts what own provider keys may serve where it includes them", async () => {
    const without = await createPayer(database, { credit: 10n, limit: 100n });
    const including = await createPayer(database, { credit: 10n, limit: 100n, includeByok: true });
    const settling = settlementOptions(database);
    for (const [payer, decision] of [
      [without, "granted"],
      [including, "key_limit"],
    ] as const) {
      const request = holdRequest(payer, 2n, { byokAmountNanoUsd: 60n });
      expect(await reserve(request)).toEqual(["granted"]);
      const second = holdRequest(payer, 2n, { byokAmountNanoUsd: 60n });
      expect(await reserve(second)).toEqual([decision]);
      if (decision === "granted") await releaseHolds(database, [second]);
      const event = realEvent(payer, request.generationId, 2n, { byok: true, listPriceNanoUsd: 50n });
      await settleReported(settling, [event]);
      const { line } = await keyMoneyOf(database, payer);
      expect(line).toEqual({ held: 0n, spent: 2n, byok: 50n });
      expect(await reserve(holdRequest(payer, 1n, { byokAmountNanoUsd: 48n }))).toEqual([decision]);
      expect(await reserve(holdRequest(payer, 1n, { byokAmountNanoUsd: 47n }))).toEqual(["granted"]);
    }
  });

  test("that is reached takes nothing from the account, and an account that is short nothing from the key", async () => {
    const limited = await createPayer(database, { credit: 100n, limit: 10n });
    expect(await reserve(holdRequest(limited, 11n))).toEqual(["key_limit"]);
    const short = await createPayer(database, { credit: 5n, limit: 100n });
    expect(await reserve(holdRequest(short, 6n))).toEqual(["credits"]);
    for (const payer of [limited, short]) {
      expect(await heldBy(payer)).toBe(0n);
      expect((await keyMoneyOf(database, payer)).line).toEqual({ held: 0n, spent: 0n, byok: 0n });
    }
  });
});

describe("the list of holds", () => {
  test("has those of a span of time by id, in pages, and lets go of its connection", async () => {
    const other = await startMoneyDatabase(1);
    try {
      const payer = await createPayer(other.database, { credit: 10n });
      const deadline = new Date(Date.now() + 7_200_000);
      const requests = Array.from({ length: 2100 }, () => holdRequest(payer, 0n, { deadline }));
      for (let at = 0; at < requests.length; at += 300) {
        await reserveCredit(other.database, requests.slice(at, at + 300), graceMs);
      }
      const paid = holdRequest(payer, 5n, { deadline, generationId: "gen-tts-0" });
      await reserveCredit(other.database, [paid, holdRequest(payer, 0n)], graceMs);
      await settleReported(settlementOptions(other.database), [realEvent(payer, paid.generationId, 4n)]);
      const range = { from: deadline, to: new Date(deadline.getTime() + 1) };
      const pages = [];
      for await (const page of listHolds(other.database, range, never)) pages.push(page);
      expect(pages.map(({ length }) => length)).toEqual([1000, 1000, 101]);
      const ids = [paid, ...requests].map(({ generationId }) => generationId);
      expect(pages.flat().map(({ generationId }) => generationId)).toEqual(ids.sort());
      expect(pages[0]?.[0]).toEqual({
        generationId: "gen-tts-0",
        accountId: payer.accountId,
        amountNanoUsd: 5n,
        deadline: expect.any(Date),
        state: "settled",
        revision: 1,
        costNanoUsd: 4n,
        debitedNanoUsd: 4n,
        seen: false,
      });
      for await (const page of listHolds(other.database, range, never)) if (page.length > 0) break;
      const leaving = new AbortController();
      const reading = listHolds(other.database, range, leaving.signal);
      await reading.next();
      leaving.abort();
      expect((await moneyOf(other.database, payer)).charged).toBe(4n);
      await expect(reading.next()).rejects.toThrow();
    } finally {
      await other.close();
    }
  });

  test("of a span without holds is empty", async () => {
    const range = { from: new Date(0), to: new Date(1) };
    expect(await listHolds(database, range, never).next()).toEqual({ done: true, value: undefined });
  });
});
