import { afterEach, beforeEach, expect, test } from "vitest";
import { connectDatabase } from "../lib/database/connect.ts";
import { pendingMigrations, type SchemaMigrations } from "../lib/database/migrate.ts";
import { busMigrations } from "../lib/events/postgres/postgres-bus-migrations.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import { destinationMigrations } from "../services/destination/migrations.ts";
import { usageMigrations } from "../services/usage/migrations.ts";
import { createTestDatabase, type TestDatabase } from "../test/support/postgres/database.ts";
import { startChild } from "./stack/child.ts";

const services = [accountMigrations, usageMigrations, destinationMigrations];
let database: TestDatabase;

beforeEach(async () => {
  database = await createTestDatabase();
});

afterEach(() => database.drop());

async function migrate() {
  const child = startChild("commands/migrate.ts", { env: { DATABASE_URL: database.url } });
  const code = await child.exited;
  return { code, lines: child.lines };
}

function pending(steps: SchemaMigrations): Promise<string[]> {
  const connection = connectDatabase({ url: database.url, schema: steps.schema, log: silentLog });
  return pendingMigrations(connection, steps).finally(() => connection.destroy());
}

test("several at once bring every schema to its head, and each step runs once", async () => {
  const runs = await Promise.all([migrate(), migrate(), migrate()]);
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
  for (const steps of services) {
    expect(await pending(steps)).toEqual([]);
    const applied = runs.flatMap(({ lines }) =>
      lines.flatMap((line) => line.split(`${steps.schema}: applied `)[1]?.split(", ") ?? []),
    );
    expect(applied).toEqual(Object.keys(steps.migrations).sort());
  }
  expect((await migrate()).lines).toEqual(services.map(({ schema }) => `${schema}: up to date`));
});

test.each([...services, busMigrations])("$schema has no step that goes back", ({ migrations }) => {
  expect(Object.values(migrations).filter(({ down }) => down !== undefined)).toEqual([]);
});

test("a database that is away is named in one line", async () => {
  const child = startChild("commands/migrate.ts", {
    env: { DATABASE_URL: "postgres://a:b@127.0.0.1:1/none" },
  });
  expect(await child.exited).toBe(5);
  expect(child.lines).toEqual(["error: the database can't be reached (ECONNREFUSED)"]);
});
