import { setTimeout as delay } from "node:timers/promises";
import { connectDatabase } from "../../lib/database/connect.ts";
import { pendingMigrations } from "../../lib/database/migrate.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { kafkaConnection } from "../../lib/events/kafka/kafka-config.ts";
import { openServiceKeySet } from "../../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../../lib/identity/service-token.ts";
import { readTlsFiles } from "../../lib/rpc/port/tls-files.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog, type Log } from "../../lib/runtime/log.ts";
import { readMasterKeys } from "../../lib/secrets/master-keys.ts";
import { createSealer } from "../../lib/secrets/seal.ts";
import { type RunningProcess, runProcess } from "../../lib/service/process.ts";
import type { Metrics } from "../../lib/telemetry/metrics.ts";
import { watchPools } from "../../lib/telemetry/metrics-database.ts";
import { measureProcess } from "../../lib/telemetry/metrics-process.ts";
import { openTracing } from "../../lib/telemetry/tracing.ts";
import { builtInProviders } from "../../providers/registry.ts";
import { createAccountService } from "./accounts/account-service.ts";
import { bootstrapAccount, type FirstAccount } from "./accounts/bootstrap.ts";
import { type AccountConfig, accountLimits, readAccountConfig, readBootstrapKeys } from "./config.ts";
import { accountMigrations } from "./migrations.ts";
import type { AccountDatabase, AccountTables } from "./store.ts";

const bootstrapRetryMs = 1000;
/** What needs no key takes none from an account. */
const providerSlugs = builtInProviders.filter(({ needsKey }) => needsKey).map(({ slug }) => slug);

await runProcess(start);

async function start(): Promise<RunningProcess> {
  const config = readAccountConfig();
  const firstAccount = readBootstrapKeys(config);
  const connection = kafkaConnection(config);
  const sealer = createSealer(readMasterKeys(config.MASTER_KEYS));
  const log = createLog({ name: "account", level: config.LOG_LEVEL });
  const tracing = await openTracing(config, "account", log);
  const measured = measureProcess(config, log);
  const { metrics, loopDelay } = measured;
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const database = openDatabase(config, metrics, log);
  const bus = createKafkaBus({ connection, clientId: "account", log });
  const founded = Promise.withResolvers<void>();
  const account = createAccountService({
    database,
    bus,
    limits: accountLimits(config),
    providerKeys: { sealer, providerSlugs },
    log,
    ...measured,
    tracer: tracing.tracer,
    verifyToken: createTokenVerifier(keys),
    founded: founded.promise,
  });
  const server = await startRpcServer({
    ...account,
    host: config.HOST,
    port: config.PORT,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    metrics: metrics.answer,
    loopDelay,
    log,
  });
  const stopping = new AbortController();
  const bootstrapping = bootstrapWhenMigrated(database, firstAccount, log, stopping.signal, founded.resolve);
  account.start();
  logListening(log, "rpc", config.HOST, server.port);
  const stop = async () => {
    stopping.abort();
    const drain = { delayMs: config.DRAIN_DELAY_MS, timeoutMs: config.DRAIN_TIMEOUT_MS };
    await Promise.all([server.drain(drain), account.stop()]);
    await bus.close();
    await bootstrapping;
    await database.destroy();
    await tracing.close();
  };
  void account.consumer?.failed.then(stop).finally(() => process.exit(1));
  return { log, stop };
}

function openDatabase({ DATABASE_URL: url }: AccountConfig, metrics: Metrics, log: Log): AccountDatabase {
  const { schema } = accountMigrations;
  return connectDatabase<AccountTables>({ url, schema, log, watch: watchPools(metrics) });
}

/** Makes the first account once the schema is there, when keys for it are configured. */
async function bootstrapWhenMigrated(
  database: AccountDatabase,
  firstAccount: FirstAccount,
  log: Log,
  signal: AbortSignal,
  founded: () => void,
): Promise<void> {
  if (firstAccount.inferenceKey === undefined && firstAccount.managementKey === undefined) return founded();
  while (!signal.aborted) {
    try {
      const pending = await pendingMigrations(database, accountMigrations).catch(() => undefined);
      if (pending?.length === 0) {
        const made = await bootstrapAccount(database, firstAccount);
        if (made !== undefined) log.info({ account_id: made.accountId }, "first account made");
        return founded();
      }
    } catch (thrown) {
      log.error({ err: thrown }, "the first account can't be made yet");
    }
    await delay(bootstrapRetryMs, undefined, { signal }).catch(() => undefined);
  }
}
