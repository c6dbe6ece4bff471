import { connectDatabase } from "../lib/database/connect.ts";
import { migrateToLatest, type SchemaMigrations } from "../lib/database/migrate.ts";
import { databaseUrlVar, readConfig } from "../lib/runtime/config.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { startFailure } from "../lib/service/process.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import { destinationMigrations } from "../services/destination/migrations.ts";
import { usageMigrations } from "../services/usage/migrations.ts";

const schemas: readonly SchemaMigrations[] = [accountMigrations, usageMigrations, destinationMigrations];

try {
  const { DATABASE_URL } = readConfig({ DATABASE_URL: databaseUrlVar() });
  for (const steps of schemas) console.log(await migrate(DATABASE_URL, steps));
} catch (thrown) {
  console.error(thrown instanceof Error ? failureLine(thrown) : String(thrown));
  process.exitCode = 1;
}

async function migrate(url: string, steps: SchemaMigrations): Promise<string> {
  const database = connectDatabase({ url, schema: steps.schema, log: silentLog, maxConnections: 2 });
  try {
    const names = await migrateToLatest(database, steps);
    return `${steps.schema}: ${names.length === 0 ? "up to date" : `applied ${names.join(", ")}`}`;
  } finally {
    await database.destroy();
  }
}

function failureLine(error: Error): string {
  const { code = "", address } = error as NodeJS.ErrnoException & { address?: string };
  // Failures to connect name an address, or are several in one.
  if (address !== undefined || error instanceof AggregateError || code === "ENOTFOUND") {
    return `error: the database can't be reached (${code || "no connection"})`;
  }
  return startFailure(error).split("\n")[0] ?? "";
}
