import { join } from "node:path";
import { createGateway } from "../gateway/app.ts";
import { gatewaySettings, publicUrl } from "../gateway/config.ts";
import { limitRequests } from "../gateway/http/rate-limit.ts";
import { ensureKeyFiles } from "../lib/identity/key-files.ts";
import { probePorts } from "../lib/rpc/port/open-port.ts";
import { readTlsFiles } from "../lib/rpc/port/tls-files.ts";
import { type DrainOptions, startRpcServer } from "../lib/rpc/server.ts";
import { systemClock } from "../lib/runtime/clock.ts";
import { logListening } from "../lib/runtime/listening.ts";
import { createLog, type Log } from "../lib/runtime/log.ts";
import { type RunningProcess, runProcess } from "../lib/service/process.ts";
import { listenForMetrics } from "../lib/telemetry/metrics-listener.ts";
import { type MeasuredProcess, measureProcess } from "../lib/telemetry/metrics-process.ts";
import { openTracing } from "../lib/telemetry/tracing.ts";
import { readStandaloneConfig, type StandaloneConfig } from "./config.ts";
import { diskIsFull } from "./disk-is-full.ts";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { type Greeting, greeting } from "./greeting.ts";
import { createLocalServices } from "./services.ts";
import { Teardown } from "./teardown.ts";

await runProcess(async (signal) => {
  const config = readStandaloneConfig();
  const log = createLog({ name: "standalone", level: config.LOG_LEVEL });
  const teardown = new Teardown(log);
  try {
    return await start(config, log, teardown, signal);
  } catch (thrown) {
    await teardown.run();
    throw (await diskIsFull(thrown, config.DATA_DIR)) ?? thrown;
  }
});

async function start(
  config: StandaloneConfig,
  log: Log,
  teardown: Teardown,
  signal: AbortSignal,
): Promise<RunningProcess> {
  const tls = await readTlsFiles(config);
  await probeOwnPorts(config);
  const measured = await tellMetrics(config, log, teardown);
  const databaseUrl = config.DATABASE_URL ?? (await ownDatabase(config, log, teardown, signal));
  const keyFiles = await ensureKeyFiles(join(config.DATA_DIR, "keys"));
  const { tracer, close } = await openTracing(config, "standalone", log);
  teardown.add(close);
  const local = await createLocalServices({ config, databaseUrl, keyFiles, log, tracer, ...measured });
  teardown.add(local.close);

  const drain = drainOnce(config);
  const rpc = await startRpcServer({
    host: config.HOST,
    port: config.RPC_PORT,
    portVariable: "RPC_PORT",
    tls,
    services: local.services.flatMap(({ services }) => services),
    routes(router) {
      for (const { routes } of local.services) routes(router);
    },
    readiness: local.readiness,
    corsOrigins: config.CORS_ORIGINS,
    loopDelay: measured.loopDelay,
    running: local.running,
    log,
  });
  teardown.add(() => rpc.drain(drain()));
  const gateway = createGateway({
    ...local.clients,
    admissions: [limitRequests(local.limiter, local.shedder)],
    settings: gatewaySettings(config),
    ...measured,
    tracer,
    log,
    clock: systemClock,
  });
  const rest = await gateway.listen({ host: config.HOST, port: config.PORT, tls });
  teardown.add(() => rest.close(drain()));
  const keys = await local.makeFirstAccount();
  void local.failed.then(() => endWithFailure(teardown));
  greet(config, log, { rpcPort: rpc.port, restPort: rest.port, keys });
  return { log, stop: () => teardown.run() };
}

/** One limit for all that is drained, which runs from the first that is asked for. */
function drainOnce({ DRAIN_DELAY_MS: delayMs, DRAIN_TIMEOUT_MS }: StandaloneConfig): () => DrainOptions {
  let byMs: number | undefined;
  return () => {
    byMs ??= performance.now() + delayMs + DRAIN_TIMEOUT_MS;
    return { delayMs, timeoutMs: Math.max(0, byMs - performance.now() - delayMs) };
  };
}

/** Before a database is made or started. Throws StartError. */
function probeOwnPorts({ HOST: host, PORT, RPC_PORT }: StandaloneConfig): Promise<void> {
  return probePorts([
    { variable: "PORT", host, port: PORT },
    { variable: "RPC_PORT", host, port: RPC_PORT },
  ]);
}

function greet(
  config: StandaloneConfig,
  log: Log,
  { rpcPort, restPort, keys }: Omit<Greeting, "url"> & { restPort: number },
): void {
  logListening(log, "rpc", config.HOST, rpcPort);
  logListening(log, "rest", config.HOST, restPort);
  const url = publicUrl({ ...config, PORT: restPort });
  process.stdout.write(greeting({ url, rpcPort, keys }));
}

/** The metrics of this process, told until all else has ended. */
async function tellMetrics(config: StandaloneConfig, log: Log, teardown: Teardown): Promise<MeasuredProcess> {
  const measured = measureProcess(config, log);
  const { HOST: host, METRICS_PORT: port } = config;
  const listener = await listenForMetrics({ host, port, metrics: measured.metrics, log });
  teardown.add(() => listener.close());
  return measured;
}

/** Starts the embedded PostgreSQL; when it ends by itself there is nothing left to serve from, so the process ends. */
async function ownDatabase(
  config: StandaloneConfig,
  log: Log,
  teardown: Teardown,
  signal: AbortSignal,
): Promise<string> {
  const postgres = await startEmbeddedPostgres({ dataDir: config.DATA_DIR, log, signal });
  teardown.add(() => postgres.stop());
  postgres.exited.then(async (error) => {
    log.fatal({ err: error }, "the embedded PostgreSQL ended");
    await endWithFailure(teardown);
  });
  return postgres.url;
}

/** For a reason that has been logged. */
async function endWithFailure(teardown: Teardown): Promise<void> {
  await teardown.run();
  process.exit(1);
}
