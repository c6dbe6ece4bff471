import { connectDatabase } from "../lib/database/connect.ts";
import { migrateSchema, type SchemaMigrations } from "../lib/database/migrate.ts";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import { destinationMigrations } from "../services/destination/migrations.ts";
import { usageMigrations } from "../services/usage/migrations.ts";

/** The schemas of the services. */
export const schemas: readonly SchemaMigrations[] = [
  accountMigrations,
  usageMigrations,
  destinationMigrations,
];

/** Brings all schemas up to date. Throws StartError when the database can't be reached or entered. */
export async function migrateSchemas(url: string, log: Log): Promise<void> {
  await connectOnce(url, log);
  for (const steps of schemas) await migrateSchema(url, steps, log);
}

/** A database that can't be reached or entered is the operator's to mend. */
async function connectOnce(url: string, log: Log): Promise<void> {
  const database = connectDatabase({ url, schema: "public", log, maxConnections: 1 });
  try {
    await database.connection().execute(async () => undefined);
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    throw new StartError(`the database can't be used (${message || code}); see DATABASE_URL`, {
      cause: thrown,
    });
  } finally {
    await database.destroy();
  }
}
