import { silentLog } from "../../../lib/runtime/log.ts";
import { usageMigrations } from "../../../services/usage/migrations.ts";
import type { UsageTables } from "../../../services/usage/store.ts";
import { createServiceDatabase, type TestServiceDatabase } from "./service-database.ts";

/** A migrated database of the usage service. */
export type TestUsageDatabase = TestServiceDatabase<UsageTables>;

/** Makes a database with the schema `usage`. */
export function createTestUsageDatabase(log = silentLog): Promise<TestUsageDatabase> {
  return createServiceDatabase(usageMigrations, log);
}
