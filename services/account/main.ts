import { setTimeout as delay } from "node:timers/promises";
import { connectDatabase } from "../../lib/database/connect.ts";
import { openServiceKeySet } from "../../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../../lib/identity/service-token.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog, type Log } from "../../lib/runtime/log.ts";
import { type RunningProcess, runProcess } from "../../lib/runtime/process.ts";
import { startRpcServer } from "../../lib/runtime/server.ts";
import { readTlsFiles } from "../../lib/runtime/tls-files.ts";
import { type AccountService, createAccountService } from "./account-service.ts";
import { type BootstrapKeys, bootstrapAccount } from "./bootstrap.ts";
import { readAccountConfig, readBootstrapKeys } from "./config.ts";
import { accountMigrations } from "./migrations.ts";
import type { AccountDatabase, AccountTables } from "./store.ts";

const bootstrapRetryMs = 1000;

await runProcess(start);

async function start(): Promise<RunningProcess> {
  const config = readAccountConfig();
  const bootstrapKeys = readBootstrapKeys(config);
  const log = createLog({ name: "account", level: config.LOG_LEVEL });
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const { schema } = accountMigrations;
  const database = connectDatabase<AccountTables>({ url: config.DATABASE_URL, schema, log });
  const account = createAccountService({ database, log, verifyToken: createTokenVerifier(keys) });
  const server = await startRpcServer({
    host: config.HOST,
    port: config.PORT,
    services: account.services,
    routes: account.routes,
    readiness: account.readiness,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    log,
  });
  const stopping = new AbortController();
  const bootstrapping = bootstrapWhenMigrated(account, database, bootstrapKeys, log, stopping.signal);
  logListening(log, "rpc", config.HOST, server.port);
  return {
    log,
    async stop() {
      stopping.abort();
      await server.drain({ delayMs: config.DRAIN_DELAY_MS, timeoutMs: config.DRAIN_TIMEOUT_MS });
      await bootstrapping;
      await database.destroy();
    },
  };
}

/** Makes the first account once the schema is there, when keys for it are configured. */
async function bootstrapWhenMigrated(
  account: AccountService,
  database: AccountDatabase,
  keys: BootstrapKeys,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  if (keys.inferenceKey === undefined && keys.managementKey === undefined) return;
  while (!signal.aborted) {
    try {
      if ((await account.readiness()).length === 0) {
        const made = await bootstrapAccount(database, keys);
        if (made !== undefined) log.info({ account_id: made.accountId }, "first account made");
        return;
      }
    } catch (thrown) {
      log.error({ err: thrown }, "the first account can't be made yet");
    }
    await delay(bootstrapRetryMs, undefined, { signal }).catch(() => undefined);
  }
}
