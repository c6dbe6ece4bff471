import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  addKey,
  createPayer,
  holdRequest,
  type MoneyDatabase,
  type Payer,
  startMoneyDatabase,
} from "../../../test/support/services/account-money.ts";
import { reserveCredit } from "../money/holds.ts";
import type { AccountDatabase, LimitResetName } from "../store.ts";
import {
  type KeyLimit,
  type LineSpending,
  limitRemaining,
  noSpending,
  type PeriodSums,
  readSpending,
} from "./key-spending.ts";

const dayMs = 86_400_000;
const graceMs = 300_000;
let world: MoneyDatabase;
let database: AccountDatabase;
let payer: Payer;

beforeAll(async () => {
  world = await startMoneyDatabase();
  database = world.database;
  payer = await createPayer(database, { credit: 10n ** 18n });
});
afterAll(() => world.close());

/** What a line spent on one day. */
interface Day {
  readonly day: string;
  readonly spent: bigint;
  readonly byok: bigint;
  readonly held: bigint;
}

const amount = fc.bigInt({ min: 0n, max: 10n ** 12n });
const amounts = fc.record({ spent: amount, byok: amount, held: amount });
/** Around a today: mostly near, so that days fall on both sides of each period's beginning. */
const daysAround = (today: number) =>
  fc
    .uniqueArray(fc.tuple(fc.integer({ min: 0, max: 45 }), amounts), {
      maxLength: 30,
      selector: ([ago]) => ago,
    })
    .map((days) => days.map(([ago, sums]): Day => ({ day: dateOf(today - ago), ...sums })));
/** Days since 1970; every other case at the turn of a year, where weeks and months begin in different years. */
const today = fc.oneof(
  fc.integer({ min: 19_000, max: 30_000 }),
  fc
    .tuple(fc.integer({ min: 2024, max: 2060 }), fc.integer({ min: -7, max: 7 }))
    .map(([year, offset]) => Date.UTC(year, 0, 1) / dayMs + offset),
);

function dateOf(day: number): string {
  return new Date(day * dayMs).toISOString().slice(0, 10);
}

/** The same amounts, computed day by day. */
function plainly(days: readonly Day[], today: number, of: "spent" | "byok" | "held"): PeriodSums {
  const date = new Date(today * dayMs);
  const monday = today - ((date.getUTCDay() + 6) % 7);
  const first = today - (date.getUTCDate() - 1);
  const since = (start: number) =>
    days.filter(({ day }) => day >= dateOf(start)).reduce((sum, day) => sum + day[of], 0n);
  return { total: since(0), daily: since(today), weekly: since(monday), monthly: since(first) };
}

async function storeLine(
  days: readonly Day[],
  rateBucket = randomBytes(32).toString("hex"),
): Promise<string> {
  const sum = (of: "spent" | "byok" | "held") => days.reduce((total, day) => total + day[of], 0n);
  const toRow = ({ spent, byok, held }: Omit<Day, "day">) => ({
    rate_bucket: rateBucket,
    spent_nano_usd: spent,
    byok_nano_usd: byok,
    held_nano_usd: held,
  });
  const line = toRow({ spent: sum("spent"), byok: sum("byok"), held: sum("held") });
  await database
    .insertInto("key_line")
    .values({ ...line, account_id: payer.accountId })
    .execute();
  const rows = days.map((day) => ({ ...toRow(day), day: day.day }));
  if (rows.length > 0) await database.insertInto("key_line_day").values(rows).execute();
  return rateBucket;
}

test("the amounts of each period are the sums of its UTC days, weeks from Monday", async () => {
  const cases = today.chain((day) => fc.tuple(fc.constant(day), fc.array(daysAround(day), { maxLength: 3 })));
  await fc.assert(
    fc.asyncProperty(cases, async ([day, lines]) => {
      const buckets = await Promise.all(lines.map((days) => storeLine(days)));
      const spending = await readSpending(database, buckets, sql<string>`${dateOf(day)}::date`);
      for (const [index, bucket] of buckets.entries()) {
        const days = lines[index] ?? [];
        expect(spending.get(bucket)).toEqual({
          spent: plainly(days, day, "spent"),
          byok: plainly(days, day, "byok"),
          held: plainly(days, day, "held"),
        });
      }
    }),
    { numRuns: 80 },
  );
});

test("whatever the time zone of the session, days are days of UTC", async () => {
  for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
    await database.connection().execute(async (connection) => {
      await sql`SELECT set_config('timezone', ${zone}, false)`.execute(connection);
      const { rows } = await sql<{ day: string }>`SELECT (now() AT TIME ZONE 'UTC')::date AS day`.execute(
        connection,
      );
      const [utcDay = { day: "" }] = rows;
      const ago = dateOf(Date.parse(utcDay.day) / dayMs - 1);
      const bucket = await storeLine([
        { day: utcDay.day, spent: 3n, byok: 0n, held: 0n },
        { day: ago, spent: 5n, byok: 0n, held: 0n },
      ]);
      const spending = await readSpending(connection, [bucket]);
      await sql`RESET timezone`.execute(connection);
      expect(spending.get(bucket)?.spent).toMatchObject({ total: 8n, daily: 3n });
    });
  }
});

test("a line that nobody used has spent nothing", async () => {
  expect(await readSpending(database, [payer.rateBucket])).toEqual(new Map());
  expect(await readSpending(database, [])).toEqual(new Map());
  expect(
    limitRemaining({ limit_nano_usd: 5n, limit_reset: "daily", include_byok_in_limit: true }, noSpending),
  ).toBe(5n);
});

test("what remains of a limit is what a reservation may take, to the nano", async () => {
  const limits = fc.record({
    limit: fc.bigInt({ min: 0n, max: 10n ** 13n }),
    reset: fc.constantFrom<LimitResetName | null>(null, "daily", "weekly", "monthly"),
    includeByok: fc.boolean(),
    days: daysAround(Math.floor(Date.now() / dayMs)),
  });
  await fc.assert(
    fc.asyncProperty(limits, async ({ limit, reset, includeByok, days }) => {
      const rateBucket = await storeLine(days);
      const keyLimit = { limit, includeByok, rateBucket, ...(reset === null ? {} : { limitReset: reset }) };
      const keyHash = await addKey(database, payer.accountId, keyLimit);
      const stored: KeyLimit = {
        limit_nano_usd: limit,
        limit_reset: reset,
        include_byok_in_limit: includeByok,
      };
      const remaining = async () => {
        const spending = await readSpending(database, [rateBucket]);
        return limitRemaining(stored, spending.get(rateBucket) ?? noSpending) ?? -1n;
      };
      const room = await remaining();
      const caller = { accountId: payer.accountId, keyHash };
      const [tooMuch] = await reserveCredit(database, [holdRequest(caller, room + 1n)], graceMs);
      expect(tooMuch).toBe("key_limit");
      if (room === 0n) return;
      expect(await reserveCredit(database, [holdRequest(caller, room)], graceMs)).toEqual(["granted"]);
      expect(await remaining()).toBe(0n);
    }),
    { numRuns: 60 },
  );
});

test("a key without a limit has no remainder, and one that overran its limit has 0", () => {
  const sums: PeriodSums = { total: 9n, daily: 1n, weekly: 2n, monthly: 3n };
  const spending: LineSpending = { spent: sums, byok: sums, held: noSpending.held };
  const key = { limit_nano_usd: 5n, limit_reset: null, include_byok_in_limit: false };
  expect(limitRemaining({ ...key, limit_nano_usd: null }, spending)).toBeUndefined();
  expect(limitRemaining(key, spending)).toBe(0n);
  expect(limitRemaining({ ...key, limit_reset: "monthly" }, spending)).toBe(2n);
  expect(limitRemaining({ ...key, limit_reset: "weekly", include_byok_in_limit: true }, spending)).toBe(1n);
});
