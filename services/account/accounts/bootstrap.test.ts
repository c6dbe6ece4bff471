import { afterEach, beforeEach, expect, test } from "vitest";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { generateApiKey, hashApiKey } from "../../../lib/identity/api-key.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { createTestDatabase, type TestDatabase } from "../../../test/support/postgres/database.ts";
import { findPrincipal } from "../keys/key-use.ts";
import { accountMigrations } from "../migrations.ts";
import type { AccountDatabase, AccountTables } from "../store.ts";
import { bootstrapAccount, bootstrapDatabase, withGeneratedKeys } from "./bootstrap.ts";

const none = { inferenceKey: undefined, managementKey: undefined };
let testDatabase: TestDatabase;
let databases: AccountDatabase[];

beforeEach(async () => {
  testDatabase = await createTestDatabase();
  databases = [];
  await migrateToLatest(connect(), accountMigrations);
});

afterEach(async () => {
  await Promise.all(databases.map((database) => database.destroy()));
  await testDatabase.drop();
});

function connect(): AccountDatabase {
  const { schema } = accountMigrations;
  const database = connectDatabase<AccountTables>({ url: testDatabase.url, schema, log: silentLog });
  databases.push(database);
  return database;
}

test("of processes that start at once one makes the account, and only its keys work", async () => {
  const starters = Array.from({ length: 6 }, connect);
  const results = await Promise.all(
    starters.map((database) => bootstrapAccount(database, withGeneratedKeys(none))),
  );
  const made = results.filter((result) => result !== undefined);
  expect(made).toHaveLength(1);
  const database = connect();
  expect(await database.selectFrom("account").select(["id", "kind"]).execute()).toEqual([
    { id: made[0]?.accountId, kind: "personal" },
  ]);
  expect(await database.selectFrom("api_key").select("kind").orderBy("kind").execute()).toEqual([
    { kind: "inference" },
    { kind: "management" },
  ]);
  for (const key of [made[0]?.inferenceKey, made[0]?.managementKey]) {
    const principal = await findPrincipal(database, hashApiKey(key ?? ""), silentLog);
    expect(principal.accountId).toBe(made[0]?.accountId);
  }
});

test("a second start makes nothing, and the keys of the first still work", async () => {
  const first = await bootstrapAccount(connect(), withGeneratedKeys(none));
  expect(await bootstrapAccount(connect(), withGeneratedKeys(none))).toBeUndefined();
  const principal = await findPrincipal(connect(), hashApiKey(first?.inferenceKey ?? ""), silentLog);
  expect(principal.scopes).toHaveLength(2);
  expect(await connect().selectFrom("ledger_entry").selectAll().execute()).toEqual([]);
});

test("the first account gets its credit once, and the audit and the ledger say so", async () => {
  const database = connect();
  const firstAccount = { ...withGeneratedKeys(none), creditNanoUsd: 10_000_000_000n };
  const made = await bootstrapAccount(database, firstAccount);
  expect(await bootstrapAccount(database, firstAccount)).toBeUndefined();
  const accounts = await database.selectFrom("account").select(["id", "balance_nano_usd"]).execute();
  expect(accounts).toEqual([{ id: made?.accountId, balance_nano_usd: 10_000_000_000n }]);
  const entries = await database.selectFrom("ledger_entry").select(["grant_id", "amount_nano_usd"]).execute();
  expect(entries).toEqual([{ grant_id: "bootstrap", amount_nano_usd: 10_000_000_000n }]);
  const audit = database.selectFrom("audit").select(["operator", "action", "note"]).orderBy("id", "desc");
  expect(await audit.executeTakeFirst()).toEqual({
    operator: "bootstrap",
    action: "credit.grant",
    note: "10 USD",
  });
  expect(made).not.toHaveProperty("creditNanoUsd");
});

test("without credit nothing is granted", async () => {
  await bootstrapAccount(connect(), { ...withGeneratedKeys(none), creditNanoUsd: 0n });
  expect(await connect().selectFrom("ledger_entry").selectAll().execute()).toEqual([]);
});

test("configured keys are taken as they are, and what is not configured is not made", async () => {
  const inferenceKey = generateApiKey();
  const result = await bootstrapAccount(connect(), { ...none, inferenceKey });
  expect(result).toMatchObject({ inferenceKey, managementKey: undefined });
  const hashes = await connect().selectFrom("api_key").select("hash").execute();
  expect(hashes).toEqual([{ hash: hashApiKey(inferenceKey) }]);
});

test("told to generate no keys, it makes the account with those that are given alone", async () => {
  const inferenceKey = generateApiKey();
  const given = { inferenceKey, managementKey: undefined };
  const made = await bootstrapDatabase(testDatabase.url, given, { generateKeys: false });
  expect(made).toEqual({ accountId: expect.any(String), ...given });
  const database = connect();
  expect(await database.selectFrom("api_key").select(["kind", "hash"]).execute()).toEqual([
    { kind: "inference", hash: hashApiKey(inferenceKey) },
  ]);
});
