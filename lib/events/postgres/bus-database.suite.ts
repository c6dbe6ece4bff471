import type { Kysely } from "kysely";
import { createTestDatabase } from "../../../test/support/postgres/database.ts";
import { connectDatabase } from "../../database/connect.ts";
import { migrateToLatest } from "../../database/migrate.ts";
import { silentLog } from "../../runtime/log.ts";
import { busMigrations } from "./postgres-bus-migrations.ts";
import type { BusTables } from "./postgres-bus-tables.ts";

/** A database for buses, and what to look into it with. */
export interface BusDatabaseUnderTest {
  readonly url: string;
  readonly database: Kysely<BusTables>;
  /** Makes the schema, where that was not asked for at once. */
  migrate(): Promise<unknown>;
  close(): Promise<void>;
}

/** Makes a database, with the schema of the PostgreSQL bus unless told otherwise. */
export async function openBusDatabase({ migrated = true } = {}): Promise<BusDatabaseUnderTest> {
  const { url, drop } = await createTestDatabase();
  const database = connectDatabase<BusTables>({ url, schema: "bus", log: silentLog, maxConnections: 3 });
  const migrate = () => migrateToLatest(database, busMigrations);
  if (migrated) await migrate();
  return {
    url,
    database,
    migrate,
    async close() {
      await database.destroy();
      await drop();
    },
  };
}
