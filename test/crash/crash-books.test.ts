import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { connectDatabase } from "../../lib/database/connect.ts";
import { migrateToLatest } from "../../lib/database/migrate.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { accountMigrations } from "../../services/account/migrations.ts";
import { usageMigrations } from "../../services/usage/migrations.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { faultsOfBooks } from "./crash-books.ts";

let server: TestDatabase;
let client: pg.Client;
const books = { database: { query: async (statement: string) => (await client.query(statement)).rows } };

/** A request that cost 5, one that was lost, one that was refused. */
const agreeing = `
  INSERT INTO account.account (id, kind, name, granted_nano_usd, charged_nano_usd)
  VALUES (uuid(), 'personal', 'Account', 9, 5);
  INSERT INTO account.hold (id, account_id, state, revision, cost_nano_usd, debited_nano_usd, seen) VALUES
    ('whole', uuid(), 'settled', 1, 5, 5, true), ('lost', uuid(), 'lost', 0, 0, 0, true),
    ('refused', uuid(), 'refused', NULL, 0, 0, false);
  INSERT INTO account.ledger_entry (account_id, debit, credit, amount_nano_usd, generation_id, revision, grant_id) VALUES
    (uuid(), 'granted', 'customer', 9, NULL, NULL, 'grant'), (uuid(), 'customer', 'revenue', 5, 'whole', 1, NULL);
  INSERT INTO usage.naming VALUES (uuid(), 'model', 'permaslug', 'provider');
  INSERT INTO usage.record
  SELECT id, revision, uuid(), '2026-03-01T12:00:00Z', uuid(), '', uuid(), uuid(), 1, 2, 3, cost, 0, ''
  FROM (VALUES ('whole', 1, 5), ('lost', 0, 0)) AS request (id, revision, cost);
  INSERT INTO usage.activity
  VALUES (uuid(), '2026-03-01', uuid(), '', uuid(), uuid(), 2, 2, 4, 6, 5, 0, '2026-03-01T12:00:00Z')`;

beforeAll(async () => {
  server = await createTestDatabase();
  for (const migrations of [accountMigrations, usageMigrations]) {
    const { schema } = migrations;
    const database = connectDatabase({ url: server.url, schema, log: silentLog, maxConnections: 1 });
    await migrateToLatest(database, migrations);
    await database.destroy();
  }
  client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(
    "CREATE FUNCTION uuid() RETURNS uuid LANGUAGE sql IMMUTABLE AS $$ SELECT md5('')::uuid $$",
  );
  await client.query(agreeing);
});

afterAll(async () => {
  await client?.end();
  await server?.drop();
});

beforeEach(async () => {
  await client.query("BEGIN");
});

afterEach(async () => {
  await client.query("ROLLBACK");
});

test("books that agree have no fault", async () => {
  expect(await faultsOfBooks(books)).toEqual([]);
});

test.for([
  [
    "an account that was charged more than its ledger says",
    "UPDATE account.account SET charged_nano_usd = 6",
  ],
  ["a hold that was never given back", "UPDATE account.account SET held_nano_usd = 1"],
  ["a closed hold without a record", "DELETE FROM usage.record WHERE event_id = 'lost'"],
  ["a record without a hold", "DELETE FROM account.hold WHERE id = 'lost'"],
  ["a record of a request that was refused", "UPDATE account.hold SET state = 'refused' WHERE id = 'lost'"],
  ["a hold that debited nothing", "UPDATE account.hold SET debited_nano_usd = 0 WHERE id = 'whole'"],
  ["a hold that is open", "UPDATE account.hold SET state = 'open' WHERE id = 'lost'"],
  ["revisions that differ", "UPDATE usage.record SET revision = 2 WHERE revision = 1"],
  [
    "a record of another account",
    "UPDATE usage.record SET account_id = md5('x')::uuid WHERE event_id = 'lost'",
  ],
  [
    "a record without its entry in the ledger",
    "DELETE FROM account.ledger_entry WHERE generation_id = 'whole'",
  ],
  [
    "an entry for a lost request",
    "UPDATE account.ledger_entry SET generation_id = 'lost' WHERE revision = 1",
  ],
  [
    "an entry for no request",
    `INSERT INTO account.ledger_entry (account_id, debit, credit, amount_nano_usd, generation_id, revision)
      VALUES (uuid(), 'customer', 'revenue', 1, 'nobody', 1)`,
  ],
  [
    "a request that was debited in parts",
    `UPDATE account.ledger_entry SET amount_nano_usd = 2 WHERE revision = 1;
      INSERT INTO account.ledger_entry (account_id, debit, credit, amount_nano_usd, generation_id, revision)
      VALUES (uuid(), 'customer', 'revenue', 3, 'whole', 2)`,
  ],
  ["a request that was counted twice", "UPDATE usage.activity SET requests = 3"],
  ["a cost that was counted twice", "UPDATE usage.activity SET charged_nano_usd = 10"],
  ["tokens that were not counted", "UPDATE usage.activity SET prompt_tokens = 0"],
  ["records that were not counted", "DELETE FROM usage.activity"],
  ["a cell without records", "UPDATE usage.activity SET day = '2026-03-02'"],
] as const)("it finds %s", async ([, change]) => {
  await client.query(change);
  expect(await faultsOfBooks(books)).not.toEqual([]);
});
