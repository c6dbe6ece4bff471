import { type Kysely, sql } from "kysely";
import type { Migration } from "kysely/migration";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { silentLog } from "../runtime/log.ts";
import { connectDatabase } from "./connect.ts";
import { migrateToLatest, pendingMigrations } from "./migrate.ts";

let database: TestDatabase;
let replicas: Kysely<unknown>[];

beforeEach(async () => {
  database = await createTestDatabase();
  replicas = Array.from({ length: 4 }, () =>
    connectDatabase({ url: database.url, schema: "shop", log: silentLog, maxConnections: 1 }),
  );
});

afterEach(async () => {
  await Promise.all(replicas.map((replica) => replica.destroy()));
  await database.drop();
});

function replica(index = 0): Kysely<unknown> {
  const found = replicas[index];
  if (found === undefined) throw new Error("no such replica");
  return found;
}

const orders: Migration = { up: (db) => db.schema.createTable("orders").addColumn("id", "int8").execute() };
const note: Migration = { up: (db) => db.schema.alterTable("orders").addColumn("note", "text").execute() };
const broken: Migration = {
  up: async (db) => {
    await db.schema.createTable("half").addColumn("id", "int8").execute();
    await sql`SELECT 1 / 0`.execute(db);
  },
};
const sleep = async (db: Kysely<unknown>, seconds: number) => {
  await sql`SELECT pg_sleep(${seconds})`.execute(db);
};
const first = { schema: "shop", migrations: { "0001_orders": orders } };
const both = { schema: "shop", migrations: { "0001_orders": orders, "0002_note": note } };

async function tables(): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'shop' ORDER BY 1`.execute(
    replica(),
  );
  return rows.map(({ name }) => name).filter((name) => !name.startsWith("kysely_"));
}

test("an empty database is brought to head, in order, once", async () => {
  expect(await pendingMigrations(replica(), both)).toEqual(["0001_orders", "0002_note"]);
  expect(await migrateToLatest(replica(), first)).toEqual(["0001_orders"]);
  expect(await pendingMigrations(replica(), both)).toEqual(["0002_note"]);
  expect(await migrateToLatest(replica(), both)).toEqual(["0002_note"]);
  expect(await pendingMigrations(replica(), both)).toEqual([]);
  expect(await migrateToLatest(replica(), both)).toEqual([]);
  await sql`INSERT INTO orders (id, note) VALUES (1, 'x')`.execute(replica());
});

test("of replicas that start together on an empty database exactly one migrates, and all end at head", async () => {
  await Promise.all(replicas.map((db) => pendingMigrations(db, both)));
  for (let round = 0; round < 15; round++) {
    const steps = { ...both, schema: `shop_${round}` };
    const ran = await Promise.all(replicas.map((db) => migrateToLatest(db, steps)));
    expect(ran.flat()).toEqual(["0001_orders", "0002_note"]);
    for (const db of replicas) expect(await pendingMigrations(db, steps)).toEqual([]);
  }
});

test("services that share a database migrate their own schemas side by side", async () => {
  const stock = connectDatabase({ url: database.url, schema: "stock", log: silentLog });
  try {
    await Promise.all([
      migrateToLatest(replica(), both),
      migrateToLatest(stock, { ...both, schema: "stock" }),
    ]);
    const { rows } = await sql`
      SELECT table_schema AS schema FROM information_schema.tables WHERE table_name = 'orders' ORDER BY 1`.execute(
      stock,
    );
    expect(rows).toEqual([{ schema: "shop" }, { schema: "stock" }]);
  } finally {
    await stock.destroy();
  }
});

test("a migration that fails is named, leaves nothing behind and frees the lock for the next", async () => {
  await migrateToLatest(replica(), first);
  const withBroken = { schema: "shop", migrations: { ...both.migrations, "0003_broken": broken } };
  await expect(migrateToLatest(replica(), withBroken)).rejects.toThrow(
    "migration 0003_broken of schema shop failed",
  );
  expect(await tables()).toEqual(["orders"]);
  expect(await pendingMigrations(replica(), both)).toEqual(["0002_note"]);
  expect(await migrateToLatest(replica(1), both)).toEqual(["0002_note"]);
});

test("a migration and the wait for one may outlast the limits that other statements have", async () => {
  const url = `${database.url}?statement_timeout=300&lock_timeout=100`;
  const slow = {
    schema: "shop",
    migrations: { "0001_slow": { up: (db: Kysely<unknown>) => sleep(db, 0.6) } },
  };
  const pair = [1, 2].map(() => connectDatabase<unknown>({ url, schema: "shop", log: silentLog }));
  try {
    const ran = await Promise.all(pair.map((db) => migrateToLatest(db, slow)));
    expect(ran.flat()).toEqual(["0001_slow"]);
  } finally {
    await Promise.all(pair.map((db) => db.destroy()));
  }
});

test("a replica of an earlier release leaves a newer schema alone", async () => {
  await migrateToLatest(replica(), both);
  expect(await migrateToLatest(replica(1), first)).toEqual([]);
  expect(await pendingMigrations(replica(1), first)).toEqual([]);
});

test("a migration that sorts before one that has run is refused", async () => {
  await migrateToLatest(replica(), first);
  const late = { schema: "shop", migrations: { "0000_late": note, ...first.migrations } };
  await expect(migrateToLatest(replica(), late)).rejects.toThrow("0000_late");
});

test("a connection is given back with the limits it had", async () => {
  await migrateToLatest(replica(), both);
  const { rows } = await sql`
    SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
      current_setting('search_path') AS path, (SELECT count(*) FROM pg_locks
        WHERE locktype = 'advisory'
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS locks`.execute(
    replica(),
  );
  expect(rows).toEqual([{ statement: "15s", lock: "5s", path: "shop", locks: 0n }]);
});

test("a schema at head needs no right to create anything", async () => {
  await migrateToLatest(replica(), both);
  await sql`CREATE ROLE reader_only LOGIN PASSWORD 'reader'`.execute(replica());
  await sql`GRANT USAGE ON SCHEMA shop TO reader_only`.execute(replica());
  await sql`GRANT SELECT ON shop.kysely_migration TO reader_only`.execute(replica());
  const url = new URL(database.url);
  url.username = "reader_only";
  url.password = "reader";
  const reader = connectDatabase({ url: url.href, schema: "shop", log: silentLog });
  try {
    expect(await migrateToLatest(reader, both)).toEqual([]);
  } finally {
    await reader.destroy();
    await sql`DROP OWNED BY reader_only`.execute(replica());
    await sql`DROP ROLE reader_only`.execute(replica());
  }
});
