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
import { runProcess } from "../../lib/service/process.ts";
import { watchPools } from "../../lib/telemetry/metrics-database.ts";
import { measureProcess } from "../../lib/telemetry/metrics-process.ts";
import { openTracing } from "../../lib/telemetry/tracing.ts";
import { readUsageConfig } from "./config.ts";
import { usageMigrations } from "./migrations.ts";
import type { UsageTables } from "./store.ts";
import { createUsageService } from "./usage-service.ts";

await runProcess(async () => {
  const config = readUsageConfig();
  const connection = kafkaConnection(config);
  const log = createLog({ name: "usage", level: config.LOG_LEVEL });
  const tracing = await openTracing(config, "usage", log);
  const measured = measureProcess(config, log);
  const keys = await openServiceKeySet({ path: config.SERVICE_JWKS_FILE, log });
  const account = await connectAccount(config, "usage");
  const { schema } = usageMigrations;
  const database = connectDatabase<UsageTables>({
    url: config.DATABASE_URL,
    schema,
    log,
    watch: watchPools(measured.metrics),
  });
  const bus = createKafkaBus({ connection, clientId: "usage", log });
  const usage = createUsageService({
    database,
    log,
    ...measured,
    tracer: tracing.tracer,
    bus,
    verifyToken: createTokenVerifier(keys),
    authenticateKey: createKeyAuthenticator({ lookUp: lookUpOverRpc(account) }),
    retentionDays: config.USAGE_RETENTION_DAYS,
  });
  const server = await startRpcServer({
    host: config.HOST,
    port: config.PORT,
    services: usage.services,
    routes: usage.routes,
    readiness: usage.readiness,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    metrics: measured.metrics.answer,
    loopDelay: measured.loopDelay,
    log,
  });
  usage.start();
  logListening(log, "rpc", config.HOST, server.port);
  const stop = async () => {
    const drain = { delayMs: config.DRAIN_DELAY_MS, timeoutMs: config.DRAIN_TIMEOUT_MS };
    await Promise.all([server.drain(drain), usage.stop()]);
    await bus.close();
    await database.destroy();
    await tracing.close();
  };
  void usage.consumer?.failed.then(() => stop()).finally(() => process.exit(1));
  return { log, stop };
});
