import { join } from "node:path";
import { createGateway } from "../gateway/app.ts";
import { gatewaySettings, publicUrl } from "../gateway/config.ts";
import { readConsoleOf } from "../gateway/console/assets.ts";
import { limitRequests } from "../gateway/http/rate-limit.ts";
import { ensureKeyFiles } from "../lib/identity/key-files.ts";
import { probePorts } from "../lib/rpc/port/open-port.ts";
import { readTlsFiles } from "../lib/rpc/port/tls-files.ts";
import { type DrainOptions, startRpcServer } from "../lib/rpc/server.ts";
import { systemClock } from "../lib/runtime/clock.ts";
import { logListening } from "../lib/runtime/listening.ts";
import type { Log } from "../lib/runtime/log.ts";
import { type Host, runHosted } from "../lib/service/host.ts";
import { listenForMetrics } from "../lib/telemetry/metrics-listener.ts";
import { readStandaloneConfig, type StandaloneConfig } from "./config.ts";
import { diskIsFull } from "./disk-is-full.ts";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { greeting } from "./greeting.ts";
import { openLocalServices } from "./services.ts";

await runHosted({
  name: "standalone",
  readConfig: readStandaloneConfig,
  async start(host, config, signal) {
    try {
      await start(host, config, signal);
    } catch (thrown) {
      throw (await diskIsFull(thrown, config.DATA_DIR)) ?? thrown;
    }
  },
});

async function start(host: Host, config: StandaloneConfig, signal: AbortSignal): Promise<void> {
  const { log, loopDelay } = host;
  const tls = await readTlsFiles(config);
  // Before a database is made or started.
  await probePorts([
    { variable: "PORT", host: config.HOST, port: config.PORT },
    { variable: "RPC_PORT", host: config.HOST, port: config.RPC_PORT },
  ]);
  const metricsListener = await listenForMetrics({ ...host, host: config.HOST, port: config.METRICS_PORT });
  host.onStop(() => metricsListener.close());
  const databaseUrl = config.DATABASE_URL ?? (await ownDatabase(host, config, signal));
  const keyFiles = await ensureKeyFiles(join(config.DATA_DIR, "keys"));
  const local = await openLocalServices(host, config, { databaseUrl, keyFiles });

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
    readiness: async () => (await Promise.all(local.services.map(({ readiness }) => readiness()))).flat(),
    corsOrigins: config.CORS_ORIGINS,
    loopDelay,
    running: local.running,
    log,
  });
  host.onStop(() => rpc.drain(drain()));
  const consoleFiles = await readConsoleOf(config);
  const gateway = createGateway({
    ...host,
    ...local.clients,
    admissions: [limitRequests(local.limiter, local.shedder)],
    settings: gatewaySettings(config),
    consoleFiles,
    clock: systemClock,
  });
  const rest = await gateway.listen({ host: config.HOST, port: config.PORT, tls });
  host.onStop(() => rest.close(drain()));
  const keys = await local.makeFirstAccount();
  logListening(log, "rpc", config.HOST, rpc.port);
  logListening(log, "rest", config.HOST, rest.port);
  const shown = { url: publicUrl({ ...config, PORT: rest.port }), rpcPort: rpc.port, keys };
  const code = consoleFiles && isForThisMachine(config) ? await local.makeConsoleCode() : undefined;
  process.stdout.write(greeting({ ...shown, hasConsole: consoleFiles !== undefined, code }));
  host.onStop(async () => sayWhatIsAwaited(log, local.shedder.running, config.DRAIN_TIMEOUT_MS));
}

/** Whether only this machine reaches the listener: whoever sees the terminal may then have keys by a link. */
function isForThisMachine({ HOST, PUBLIC_URL }: StandaloneConfig): boolean {
  const isLoopback = HOST === "localhost" || HOST === "::1" || /^127(\.\d{1,3}){3}$/.test(HOST);
  return isLoopback && PUBLIC_URL === undefined;
}

/** To whoever has pressed Ctrl-C. */
function sayWhatIsAwaited(log: Log, requestsInFlight: number, withinMs: number): void {
  if (requestsInFlight === 0) log.info("stopping");
  else
    log.info(
      { requestsInFlight, withinMs },
      "stopping when what is in flight has ended; Ctrl-C again ends at once",
    );
}

/** One limit for all that is drained, which runs from the first that is asked for. */
function drainOnce({ DRAIN_DELAY_MS: delayMs, DRAIN_TIMEOUT_MS }: StandaloneConfig): () => DrainOptions {
  let byMs: number | undefined;
  return () => {
    byMs ??= performance.now() + delayMs + DRAIN_TIMEOUT_MS;
    return { delayMs, timeoutMs: Math.max(0, byMs - performance.now() - delayMs) };
  };
}

/** Starts the embedded PostgreSQL; when it ends by itself there is nothing left to serve from, so the process ends. */
async function ownDatabase(
  host: Host,
  { DATA_DIR: dataDir }: StandaloneConfig,
  signal: AbortSignal,
): Promise<string> {
  const { log } = host;
  const postgres = await startEmbeddedPostgres({ dataDir, log, signal });
  host.onStop(() => postgres.stop());
  void postgres.exited.then((error) => {
    log.fatal({ err: error }, "the embedded PostgreSQL ended");
    return host.fail();
  });
  return postgres.url;
}
