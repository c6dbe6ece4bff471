import { silentLog } from "../../../lib/runtime/log.ts";
import { destinationMigrations } from "../../../services/destination/migrations.ts";
import type { DestinationTables } from "../../../services/destination/store.ts";
import { createServiceDatabase, type TestServiceDatabase } from "./service-database.ts";

/** A migrated database of the destination service. */
export type TestDestinationDatabase = TestServiceDatabase<DestinationTables>;

/** Makes a database with the schema `destination`. */
export function createTestDestinationDatabase(log = silentLog): Promise<TestDestinationDatabase> {
  return createServiceDatabase(destinationMigrations, log);
}
