import { openGenerationProcess } from "../../lib/generation/generation-process.ts";
import { readTlsFiles } from "../../lib/rpc/port/tls-files.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { runProcess } from "../../lib/service/process.ts";
import { measureProcess } from "../../lib/telemetry/metrics-process.ts";
import { openTracing } from "../../lib/telemetry/tracing.ts";
import { openProviders } from "../../providers/registry.ts";
import { watchEngines } from "../../providers/routing/upstream-metrics.ts";
import { drainTimeoutMs, readSpeechConfig, synthesisLimits } from "./config.ts";
import { createSpeechService } from "./speech-service.ts";

await runProcess(async () => {
  const config = readSpeechConfig();
  const log = createLog({ name: "speech", level: config.LOG_LEVEL });
  const tracing = await openTracing(config, "speech", log);
  const measured = measureProcess(config, log);
  const { metrics, loopDelay } = measured;
  const offer = await openProviders({
    environment: config.environment,
    catalogDirectory: config.CATALOG_DIR,
    log,
  });
  const connections = await openGenerationProcess(config, "speech", log, measured);
  watchEngines(metrics, offer.providers);
  const speech = createSpeechService({
    ...offer,
    ...connections,
    limits: synthesisLimits(config),
    log,
    ...measured,
    tracer: tracing.tracer,
  });
  const server = await startRpcServer({
    ...speech,
    host: config.HOST,
    port: config.PORT,
    tls: await readTlsFiles(config),
    corsOrigins: config.CORS_ORIGINS,
    metrics: metrics.answer,
    loopDelay,
    running: connections.paid.running,
    log,
  });
  logListening(log, "rpc", config.HOST, server.port);
  return {
    log,
    async stop() {
      await server.drain({ delayMs: config.DRAIN_DELAY_MS, timeoutMs: drainTimeoutMs(config) });
      await connections.close();
      await offer.close();
      await tracing.close();
    },
  };
});
