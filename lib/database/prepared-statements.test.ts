import { type Kysely, sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";
import { prepared } from "./prepared-statements.ts";

let database: TestDatabase;
let db: Kysely<unknown>;

beforeEach(async () => {
  database = await createTestDatabase();
  db = connectDatabase({ url: database.url, schema: "public", log: silentLog, maxConnections: 1 });
});

afterEach(async () => {
  await db.destroy();
  await database.drop();
});

async function add(a: number, b: number): Promise<unknown> {
  const { rows } = await sql<{ sum: number }>`${prepared("add")} SELECT ${a}::int + ${b}::int AS sum`.execute(
    db,
  );
  return rows[0]?.sum;
}

async function preparedNames() {
  const { rows } = await sql<{ name: string; calls: string }>`
    SELECT name, generic_plans + custom_plans AS calls FROM pg_prepared_statements ORDER BY name`.execute(db);
  return rows.map(({ name, calls }) => `${name} ${calls}`);
}

test("a marked statement is prepared once and runs with each call's values", async () => {
  expect(await Promise.all([add(1, 2), add(3, 4), add(5, 6)])).toEqual([3, 7, 11]);
  expect(await preparedNames()).toEqual(["add 3"]);
});

test("any other statement is not, also in a transaction", async () => {
  await db.transaction().execute((transaction) => sql`SELECT ${1}::int`.execute(transaction));
  expect(await preparedNames()).toEqual([]);
});

test("what fails leaves its statement usable", async () => {
  const divide = (by: number) =>
    sql<{ result: number }>`${prepared("divide")} SELECT 6 / ${by}::int AS result`.execute(db);
  await expect(divide(0)).rejects.toThrow("division by zero");
  await expect(
    db
      .transaction()
      .execute((transaction) =>
        sql`${prepared("divide")} SELECT 6 / ${0}::int AS result`.execute(transaction),
      ),
  ).rejects.toThrow("division");
  expect((await divide(3)).rows).toEqual([{ result: 2 }]);
});
