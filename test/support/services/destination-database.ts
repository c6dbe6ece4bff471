import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest } from "../../../lib/database/migrate.ts";
import { type Log, silentLog } from "../../../lib/runtime/log.ts";
import { destinationMigrations } from "../../../services/destination/migrations.ts";
import type { DestinationDatabase, DestinationTables } from "../../../services/destination/store.ts";
import { createTestDatabase } from "../postgres/database.ts";

/** A migrated database of the destination service. */
export interface TestDestinationDatabase {
  readonly url: string;
  readonly database: DestinationDatabase;
  /** Another pool of connections to it, as another replica has; closed with it. */
  connect(maxConnections?: number): DestinationDatabase;
  close(): Promise<void>;
}

/** Makes a database with the schema `destination`. */
export async function createTestDestinationDatabase(log: Log = silentLog): Promise<TestDestinationDatabase> {
  const { url, drop } = await createTestDatabase();
  // Tests let transactions wait for each other on purpose, on machines that may be slow.
  const patientUrl = `${url}?lock_timeout=60000`;
  const { schema } = destinationMigrations;
  const pools: DestinationDatabase[] = [];
  const connect = (maxConnections = 8) => {
    const pool = connectDatabase<DestinationTables>({ url: patientUrl, schema, log, maxConnections });
    pools.push(pool);
    return pool;
  };
  const database = connect();
  await migrateToLatest(database, destinationMigrations);
  return {
    url: patientUrl,
    database,
    connect,
    async close() {
      for (const pool of pools) await pool.destroy();
      await drop();
    },
  };
}
