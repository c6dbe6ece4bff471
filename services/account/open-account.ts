import { pendingMigrations } from "../../lib/database/migrate.ts";
import type { ConfigOf } from "../../lib/runtime/config.ts";
import { repeat } from "../../lib/runtime/repeat.ts";
import { readMasterKeys } from "../../lib/secrets/master-keys.ts";
import { createSealer } from "../../lib/secrets/seal.ts";
import type { Host } from "../../lib/service/host.ts";
import { openDatabase } from "../../lib/service/open-database.ts";
import type { ServiceHost } from "../../lib/service/run-service.ts";
import type { databaseSpec, sealingSpec } from "../../lib/service/service-spec.ts";
import { type AccountService, createAccountService } from "./accounts/account-service.ts";
import { bootstrapAccount, type FirstAccount } from "./accounts/bootstrap.ts";
import { accountLimits, type BootstrapConfig, type MoneyConfig, readBootstrapKeys } from "./config.ts";
import { accountMigrations } from "./migrations.ts";
import type { AccountDatabase, AccountTables } from "./store.ts";

type AccountConfig = ConfigOf<typeof databaseSpec & typeof sealingSpec> &
  BootstrapConfig &
  MoneyConfig & { readonly CATALOG_DIR: string | undefined };

const bootstrapRetryMs = 1000;

/**
 * The account service on what a process has. The first account is made as soon as the schema is there, unless `founded`
 * says when it is. Throws ConfigError for master keys, keys of that account, or a catalogue that can't be used.
 */
export async function openAccount(
  host: ServiceHost,
  config: AccountConfig,
  founded?: Promise<void>,
): Promise<AccountService> {
  const firstAccount = readBootstrapKeys(config);
  const sealer = createSealer(readMasterKeys(config.MASTER_KEYS));
  const providerSlugs = ownKeySlugs(config.CATALOG_DIR);
  if (config.CATALOG_DIR !== undefined) await providerSlugs();
  const database = openDatabase<AccountTables>(host, config, accountMigrations);
  return createAccountService({
    ...host,
    database,
    limits: accountLimits(config),
    providerKeys: { sealer, providerSlugs },
    founded: founded ?? bootstrapWhenMigrated(host, database, firstAccount),
  });
}

/** Reads the catalogue when a first provider key is brought: few processes are ever asked for it. */
function ownKeySlugs(catalogDir: string | undefined): () => Promise<readonly string[]> {
  let reading: Promise<readonly string[]> | undefined;
  const read = async () => (await import("../../providers/configured.ts")).readOwnKeySlugs(catalogDir);
  return () => {
    reading ??= read().catch((thrown: unknown) => {
      reading = undefined;
      throw thrown;
    });
    return reading;
  };
}

/** Makes the first account once the schema is there, when keys for it are configured; resolves when it need not be. */
function bootstrapWhenMigrated(
  { log, onStop }: Host,
  database: AccountDatabase,
  firstAccount: FirstAccount,
): Promise<void> {
  if (firstAccount.inferenceKey === undefined && firstAccount.managementKey === undefined)
    return Promise.resolve();
  const founded = Promise.withResolvers<void>();
  const founding = repeat({
    name: "make the first account",
    async run() {
      const pending = await pendingMigrations(database, accountMigrations).catch(() => undefined);
      if (pending?.length !== 0) return false;
      const made = await bootstrapAccount(database, firstAccount);
      if (made !== undefined) log.info({ account_id: made.accountId }, "first account made");
      founded.resolve();
      void founding.stop();
      return false;
    },
    pauseMs: bootstrapRetryMs,
    log,
  });
  onStop(() => founding.stop());
  return founded.promise;
}
