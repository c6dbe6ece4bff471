import { sql } from "kysely";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import {
  addKey,
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
import type { AccountDatabase } from "../store.ts";
import { type HoldRequest, releaseHolds, reserveCredit } from "./holds.ts";
import { settleConsumed, settleReported } from "./settlements.ts";

/*
 * Schedules of two connections, timed by hand: the second waits for the first, which ends while it waits. Each has
 * another hold open beside it, so that a hold freed twice shows.
 */

let world: MoneyDatabase;
let database: AccountDatabase;
let payer: Payer;
let request: HoldRequest;

beforeAll(async () => {
  world = await startMoneyDatabase();
  ({ database } = world);
});
afterAll(() => world.close());
beforeEach(async () => {
  payer = await createPayer(database, { credit: 100n });
  request = holdRequest(payer, 10n);
  expect(await reserve(database, holdRequest(payer, 10n), request)).toEqual(["granted", "granted"]);
});
afterEach(async () => expect(await faultsOfBooks(database)).toEqual([]));

type Step<T = unknown> = (connection: AccountDatabase) => Promise<T>;

const reserve = (connection: AccountDatabase, ...requests: HoldRequest[]) =>
  reserveCredit(connection, requests, 300_000);
const reported: Step = (connection) =>
  settleReported(settlementOptions(connection), [realEvent(payer, request.generationId, 7n)]);
const consumed: Step = (connection) =>
  settleConsumed(settlementOptions(connection), [realEvent(payer, request.generationId, 7n)]);
const lost: Step = (connection) =>
  settleConsumed(settlementOptions(connection), [lostEvent(payer, request.generationId, request.deadline)]);
const release: Step = (connection) => releaseHolds(connection, [request]);

async function untilWaiting(count: number): Promise<void> {
  await waitUntil(async () => {
    const { rows } = await sql`SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`.execute(database);
    return rows.length === count;
  });
}

/** The second step is begun when the first has acted but not ended, and waits for it; then the first ends. */
async function overlap<T>(first: Step, second: Step<T>, end: "commit" | "rollback" = "commit"): Promise<T> {
  const transaction = await database.startTransaction().execute();
  try {
    await first(transaction);
    const waiting = second(database);
    await untilWaiting(1);
    await transaction[end]().execute();
    return await waiting;
  } finally {
    if (!transaction.isCommitted && !transaction.isRolledBack) await transaction.rollback().execute();
  }
}

function holdOf({ generationId }: HoldRequest) {
  return database
    .selectFrom("hold")
    .select(["state", "seen", "revision"])
    .where("id", "=", generationId)
    .executeTakeFirst();
}

const settled = { balance: 93n, held: 10n, charged: 7n };
const freed = { balance: 100n, held: 10n, charged: 0n };

test.for([
  ["reported while it is consumed", consumed, reported, { seen: true }],
  ["consumed while it is reported", reported, consumed, { seen: true }],
  ["consumed by two consumers", consumed, consumed, { seen: true }],
  ["reported by two copies of a call", reported, reported, { seen: false }],
  ["reported while it is consumed as lost", lost, reported, { seen: false }],
  ["consumed as lost while it is reported", reported, lost, { seen: false }],
  ["consumed while it is consumed as lost", lost, consumed, { seen: true }],
  ["consumed as lost while it is consumed", consumed, lost, { seen: true }],
] as const)("an event %s is debited once and its hold freed once", async ([, first, second, hold]) => {
  await overlap(first, second);
  expect(await moneyOf(database, payer)).toEqual(settled);
  expect(await holdOf(request)).toEqual({ state: "settled", revision: 1, ...hold });
});

test.for([
  ["consumed as lost twice", lost, lost, "lost"],
  ["released twice", release, release, "released"],
  ["released while it is consumed as lost", lost, release, "lost"],
  ["consumed as lost while it is released", release, lost, "lost"],
] as const)("a hold %s is freed once", async ([, first, second, state]) => {
  await overlap(first, second);
  expect(await moneyOf(database, payer)).toEqual(freed);
  expect(await holdOf(request)).toMatchObject({ state });
});

test.for([
  ["reported", reported, consumed],
  ["consumed", consumed, reported],
  ["consumed as lost", lost, consumed],
] as const)(
  "a process that dies when its event was %s, before it is committed, leaves all to the next",
  async ([, first, second]) => {
    await overlap(first, second, "rollback");
    expect(await moneyOf(database, payer)).toEqual(settled);
  },
);

test("a release waits for the reservation under way, and frees it", async () => {
  const reserved = holdRequest(payer, 30n);
  await overlap(
    (connection) => reserve(connection, reserved),
    (connection) => releaseHolds(connection, [reserved]),
  );
  expect(await holdOf(reserved)).toMatchObject({ state: "released" });
  expect(await moneyOf(database, payer)).toEqual({ balance: 100n, held: 20n, charged: 0n });
});

test.for([
  ["is refused by it", "commit", ["closed"], 20n],
  ["is granted if it never was", "rollback", ["granted"], 50n],
] as const)(
  "a reservation waits for the release of its id under way, and %s",
  async ([, end, decisions, held]) => {
    const reserved = holdRequest(payer, 30n);
    const decided = await overlap(
      (connection) => releaseHolds(connection, [reserved]),
      (connection) => reserve(connection, reserved),
      end,
    );
    expect(decided).toEqual(decisions);
    expect(await moneyOf(database, payer)).toMatchObject({ held });
  },
);

test.for([
  ["granted", 30n],
  ["credits", 90n],
] as const)(
  "the copy of a reservation waits for it, is %s as well and holds nothing more",
  async ([decision, amount]) => {
    const reserved = holdRequest(payer, amount);
    const copy = await overlap(
      (connection) => reserve(connection, reserved),
      (connection) => reserve(connection, reserved),
    );
    expect(copy).toEqual([decision]);
    const held = decision === "granted" ? 50n : 20n;
    expect(await moneyOf(database, payer)).toEqual({ balance: 100n, held, charged: 0n });
  },
);

test.for([
  ["the balance", {}, "one key", "credits"],
  ["the balance", {}, "two keys", "credits"],
  ["the limit of their key", { limit: 100n }, "one key", "key_limit"],
] as const)(
  "of two reservations for the rest of %s, the second waits and is refused",
  async ([, limits, keys, refusal]) => {
    const one = await createPayer(database, { credit: "limit" in limits ? 1000n : 100n, ...limits });
    const other = keys === "one key" ? one : { ...one, keyHash: await addKey(database, one.accountId) };
    const second = await overlap(
      (connection) => reserve(connection, holdRequest(one, 60n)),
      (connection) => reserve(connection, holdRequest(other, 60n), holdRequest(other, 40n)),
    );
    expect(second).toEqual([refusal, "granted"]);
    expect(await moneyOf(database, one)).toMatchObject({ held: 100n });
  },
);

test("a reservation sees what a settlement under way leaves", async () => {
  const dear = realEvent(payer, request.generationId, 85n);
  const decided = await overlap(
    (connection) => settleReported(settlementOptions(connection), [dear]),
    (connection) => reserve(connection, holdRequest(payer, 6n), holdRequest(payer, 5n)),
  );
  expect(decided).toEqual(["credits", "granted"]);
});

test.for([
  [
    "reservations",
    (connection: AccountDatabase, requests: HoldRequest[]) => reserve(connection, ...requests),
    false,
  ],
  ["releases of ids never heard of", releaseHolds, false],
  ["releases", releaseHolds, true],
  [
    "settlements",
    (connection: AccountDatabase, requests: HoldRequest[]) =>
      settleReported(
        settlementOptions(connection),
        requests.map(({ generationId }) => realEvent(payer, generationId, 1n)),
      ),
    true,
  ],
] as const)(
  "batches of %s that overlap in adverse orders take their holds in one order",
  async ([, act, open]) => {
    const prefix = newGenerationId();
    const [first, second, last] = ["a", "b", "c"].map((name) =>
      holdRequest(payer, 10n, { generationId: `${prefix}-${name}` }),
    ) as [HoldRequest, HoldRequest, HoldRequest];
    if (open) await reserve(database, first, second, last);
    const transaction = await database.startTransaction().execute();
    try {
      await act(transaction, [last]);
      const acting = act(database, [first, last, second]);
      await untilWaiting(1);
      const adverse = act(database, [second, first]);
      await untilWaiting(2);
      await transaction.commit().execute();
      await Promise.all([acting, adverse]);
    } finally {
      if (!transaction.isCommitted) await transaction.rollback().execute();
    }
  },
);
