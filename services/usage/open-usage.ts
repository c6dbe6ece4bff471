import type { ConfigOf } from "../../lib/runtime/config.ts";
import { openDatabase } from "../../lib/service/open-database.ts";
import type { ServiceHost } from "../../lib/service/run-service.ts";
import type { databaseSpec, retentionSpec } from "../../lib/service/service-spec.ts";
import { usageMigrations } from "./migrations.ts";
import type { UsageTables } from "./store.ts";
import { createUsageService, type RunnableUsageService } from "./usage-service.ts";

/** The usage service on what a process has. */
export async function openUsage(
  host: ServiceHost,
  config: ConfigOf<typeof databaseSpec & typeof retentionSpec>,
): Promise<RunnableUsageService> {
  const { authenticateKey } = await host.connectAccount();
  return createUsageService({
    ...host,
    authenticateKey,
    database: openDatabase<UsageTables>(host, config, usageMigrations),
    retentionDays: config.USAGE_RETENTION_DAYS,
  });
}
