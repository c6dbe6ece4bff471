import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { usageMigrations } from "../../../services/usage/migrations.ts";
import type { UsageDatabase, UsageTables } from "../../../services/usage/store.ts";
import { createTestDatabase } from "../postgres/database.ts";

/** A migrated database of the usage service. */
export interface TestUsageDatabase {
  readonly url: string;
  readonly database: UsageDatabase;
  /** Another pool of connections to it, as another replica has; closed with it. */
  connect(maxConnections?: number): UsageDatabase;
  close(): Promise<void>;
}

/** Makes a database with the schema `usage`. */
export async function createTestUsageDatabase(log: Log = silentLog): Promise<TestUsageDatabase> {
  const { url, drop } = await createTestDatabase();
  // Tests let transactions wait for each other on purpose, on machines that may be slow.
  const patientUrl = `${url}?lock_timeout=60000`;
  const { schema } = usageMigrations;
  const pools: UsageDatabase[] = [];
  const connect = (maxConnections = 8) => {
    const pool = connectDatabase<UsageTables>({ url: patientUrl, schema, log, maxConnections });
    pools.push(pool);
    return pool;
  };
  const database = connect();
  await migrateToLatest(database, usageMigrations);
  return {
    url,
    database,
    connect,
    async close() {
      for (const pool of pools) await pool.destroy();
      await drop();
    },
  };
}
