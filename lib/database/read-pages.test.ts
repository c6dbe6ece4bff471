import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";
import { readPages } from "./read-pages.ts";

let world: { readonly database: Kysely<unknown>; readonly own: TestDatabase };
const never = new AbortController().signal;

beforeAll(async () => {
  const own = await createTestDatabase();
  const database = connectDatabase({ url: own.url, schema: "public", log: silentLog });
  await sql`CREATE TABLE account (id bigserial)`.execute(database);
  world = { database, own };
});
afterAll(async () => {
  await world.database.destroy();
  await world.own.drop();
});

const numbers = (count: number) =>
  sql<{ n: number }>`SELECT n FROM generate_series(1, ${count}::int) AS n ORDER BY n`;

async function transactionsOpen(): Promise<number> {
  const { rows } = await sql<{ pid: number }>`SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND state LIKE 'idle in transaction%'`.execute(world.database);
  return rows.length;
}

test.for([
  [0, []],
  [1, [1]],
  [1000, [1000]],
  [2500, [1000, 1000, 500]],
] as const)("%i rows come in pages of %j", async ([count, sizes]) => {
  const pages: (readonly { n: number }[])[] = [];
  for await (const page of readPages(world.database, numbers(count), never)) pages.push(page);
  expect(pages.map((page) => page.length)).toEqual(sizes);
  expect(pages.flat().map(({ n }) => n)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  expect(await transactionsOpen()).toBe(0);
});

test("all pages are of one moment", async () => {
  const accounts = sql<{ id: string }>`SELECT id FROM account, generate_series(1, 600)`;
  const add = () => sql`INSERT INTO account DEFAULT VALUES`.execute(world.database);
  await add();
  await add();
  let seen = 0;
  for await (const page of readPages(world.database, accounts, never)) {
    if (seen === 0) await add();
    seen += page.length;
  }
  expect(seen).toBe(1200);
});

test("a reader who leaves, or whose call ends, keeps no connection", async () => {
  for await (const page of readPages(world.database, numbers(2500), never)) {
    expect(page).toHaveLength(1000);
    expect(await transactionsOpen()).toBe(1);
    break;
  }
  expect(await transactionsOpen()).toBe(0);
  const ending = new AbortController();
  const pages = readPages(world.database, numbers(2500), ending.signal);
  await pages.next();
  ending.abort();
  await waitUntil(async () => (await transactionsOpen()) === 0);
  await expect(pages.next()).rejects.toThrow();
  const ended = readPages(world.database, numbers(1), AbortSignal.abort(new Error("ended before")));
  await expect(ended.next()).rejects.toThrow("ended before");
  expect(await transactionsOpen()).toBe(0);
});
