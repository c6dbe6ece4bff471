import { connectDatabase, type PoolReading } from "../lib/database/connect.ts";
import { migrateToLatest } from "../lib/database/migrate.ts";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { accountMigrations } from "../services/account/migrations.ts";
import type { AccountDatabase, AccountTables } from "../services/account/store.ts";
import { destinationMigrations } from "../services/destination/migrations.ts";
import type { DestinationDatabase, DestinationTables } from "../services/destination/store.ts";
import { usageMigrations } from "../services/usage/migrations.ts";
import type { UsageDatabase, UsageTables } from "../services/usage/store.ts";

/** The databases of the services, one schema each, up to date. */
export interface LocalDatabases {
  readonly account: AccountDatabase;
  readonly usage: UsageDatabase;
  readonly destination: DestinationDatabase;
  close(): Promise<void>;
}

/** Connects and migrates. Throws StartError when the database can't be reached or entered. */
export async function openLocalDatabases(
  url: string,
  log: Log,
  watch?: (pool: PoolReading) => void,
): Promise<LocalDatabases> {
  const account = connectDatabase<AccountTables>({ url, schema: accountMigrations.schema, log, watch });
  const usage = connectDatabase<UsageTables>({ url, schema: usageMigrations.schema, log, watch });
  const destination = connectDatabase<DestinationTables>({
    url,
    schema: destinationMigrations.schema,
    log,
    watch,
  });
  const close = async () => {
    await Promise.all([account, usage, destination].map((database) => database.destroy()));
  };
  try {
    await connectOnce(account);
    await migrateToLatest(account, accountMigrations);
    await migrateToLatest(usage, usageMigrations);
    await migrateToLatest(destination, destinationMigrations);
    return { account, usage, destination, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

/** A database that can't be reached or entered is the operator's to mend. */
async function connectOnce(database: AccountDatabase): Promise<void> {
  try {
    await database.connection().execute(async () => undefined);
  } catch (thrown) {
    const { message, code } = thrown as NodeJS.ErrnoException;
    throw new StartError(`the database can't be used (${message || code}); see DATABASE_URL`, {
      cause: thrown,
    });
  }
}
