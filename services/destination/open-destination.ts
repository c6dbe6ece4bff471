import type { ConfigOf } from "../../lib/runtime/config.ts";
import { readMasterKeys } from "../../lib/secrets/master-keys.ts";
import { createSealer } from "../../lib/secrets/seal.ts";
import { openDatabase } from "../../lib/service/open-database.ts";
import type { ServiceHost } from "../../lib/service/run-service.ts";
import type { databaseSpec, retentionSpec, sealingSpec } from "../../lib/service/service-spec.ts";
import type { receiverSpec } from "./config.ts";
import { openReceivers } from "./delivery/receivers.ts";
import { destinationMigrations } from "./migrations.ts";
import { createDestinationService, type RunnableDestinationService } from "./settings/destination-service.ts";
import type { DestinationTables } from "./store.ts";
import { destinationTypes } from "./types/registry.ts";

type DestinationConfig = ConfigOf<
  typeof databaseSpec & typeof sealingSpec & typeof retentionSpec & typeof receiverSpec
>;

/** Longest wait for the audit, milliseconds. */
const recordTimeoutMs = 5000;

/** The destination service on what a process has. Throws ConfigError for master keys that can't be used. */
export async function openDestination(
  host: ServiceHost,
  config: DestinationConfig,
): Promise<RunnableDestinationService> {
  const sealer = createSealer(readMasterKeys(config.MASTER_KEYS));
  const { account, authenticateKey } = await host.connectAccount();
  const database = openDatabase<DestinationTables>(host, config, destinationMigrations);
  const receivers = openReceivers({ allowedCidrs: config.DESTINATION_ALLOWED_CIDRS });
  host.onStop(() => receivers.close());
  return createDestinationService({
    ...host,
    authenticateKey,
    recordAction: (action) => account.recordDestinationAction(action, { timeoutMs: recordTimeoutMs }),
    database,
    sealer,
    receivers,
    types: destinationTypes,
    retentionDays: config.USAGE_RETENTION_DAYS,
  });
}
