import type { Kysely } from "kysely";
import { connectDatabase } from "../../../lib/database/connect.ts";
import { migrateToLatest, type SchemaMigrations } from "../../../lib/database/migrate.ts";
import type { Log } from "../../../lib/runtime/log.ts";
import { createTestDatabase } from "../postgres/database.ts";

/** A migrated database of a service. */
export interface TestServiceDatabase<Tables> {
  readonly url: string;
  readonly database: Kysely<Tables>;
  /** Another pool of connections to it, as another replica has; closed with it. */
  connect(maxConnections?: number): Kysely<Tables>;
  close(): Promise<void>;
}

/** Makes a database with the schema of a service. */
export async function createServiceDatabase<Tables>(
  migrations: SchemaMigrations,
  log: Log,
): Promise<TestServiceDatabase<Tables>> {
  const { url: plainUrl, drop } = await createTestDatabase();
  // Tests let transactions wait for each other on purpose, on machines that may be slow.
  const url = `${plainUrl}?lock_timeout=60000`;
  const { schema } = migrations;
  const pools: Kysely<Tables>[] = [];
  const connect = (maxConnections = 8) => {
    const pool = connectDatabase<Tables>({ url, schema, log, maxConnections });
    pools.push(pool);
    return pool;
  };
  const database = connect();
  await migrateToLatest(database, migrations);
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
