import { connectDatabase } from "../../lib/database/connect.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { kafkaConnection } from "../../lib/events/kafka/kafka-config.ts";
import { connectAccount } from "../../lib/identity/account-client.ts";
import { createKeyAuthenticator, lookUpOverRpc } from "../../lib/identity/authenticate.ts";
import { openServiceKeySet } from "../../lib/identity/service-key-set.ts";
import { createTokenVerifier } from "../../lib/identity/service-token.ts";
import { readTlsFiles } from "../../lib/rpc/port/tls-files.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { readMasterKeys } from "../../lib/secrets/master-keys.ts";
import { createSealer } from "../../lib/secrets/seal.ts";
import { type RunningProcess, runProcess } from "../../lib/service/process.ts";
import { watchPools } from "../../lib/telemetry/metrics-database.ts";
import { measureProcess } from "../../lib/telemetry/metrics-process.ts";
import { openTracing } from "../../lib/telemetry/tracing.ts";
import { readDestinationConfig } from "./config.ts";
import { openReceivers } from "./delivery/receivers.ts";
import { destinationMigrations } from "./migrations.ts";
import { createDestinationService } from "./settings/destination-service.ts";
import type { DestinationTables } from "./store.ts";
import { destinationTypes } from "./types/registry.ts";

await runProcess(start);

async function start(): Promise<RunningProcess> {
  const config = readDestinationConfig();
  const connection = kafkaConnection(config);
  const sealer = createSealer(readMasterKeys(config.MASTER_KEYS));
  const log = createLog({ name: "destination", level: config.LOG_LEVEL });
  const measured = measureProcess(config, log);
  const tracing = await openTracing(config, "destination", log);
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const account = await connectAccount(config, "destination");
  const { schema } = destinationMigrations;
  const [url, watch] = [config.DATABASE_URL, watchPools(measured.metrics)];
  const database = connectDatabase<DestinationTables>({ url, schema, log, watch });
  const bus = createKafkaBus({ connection, clientId: "destination", log });
  const receivers = openReceivers({ allowedCidrs: config.DESTINATION_ALLOWED_CIDRS });
  const destination = createDestinationService({
    database,
    log,
    ...measured,
    tracer: tracing.tracer,
    bus,
    types: destinationTypes,
    sealer,
    receivers,
    verifyToken: createTokenVerifier(keys),
    authenticateKey: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }),
    retentionDays: config.USAGE_RETENTION_DAYS,
  });
  const server = await startRpcServer({
    ...destination,
    host: config.HOST,
    port: config.PORT,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    metrics: measured.metrics.answer,
    loopDelay: measured.loopDelay,
    log,
  });
  destination.start();
  logListening(log, "rpc", config.HOST, server.port);
  const stop = async () => {
    const drain = { delayMs: config.DRAIN_DELAY_MS, timeoutMs: config.DRAIN_TIMEOUT_MS };
    await Promise.all([server.drain(drain), destination.stop()]);
    await receivers.close();
    await bus.close();
    await database.destroy();
    await tracing.close();
  };
  void destination.consumer?.failed.then(stop).finally(() => process.exit(1));
  return { log, stop };
}
