import { openGenerationProcess } from "../../lib/generation/generation-process.ts";
import { createGuardedFetch } from "../../lib/http/guarded-fetch.ts";
import { createAddressGuard } from "../../lib/http/url-guard.ts";
import { readTlsFiles } from "../../lib/rpc/port/tls-files.ts";
import { startRpcServer } from "../../lib/rpc/server.ts";
import { logListening } from "../../lib/runtime/listening.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { runProcess } from "../../lib/service/process.ts";
import { measureProcess } from "../../lib/telemetry/metrics-process.ts";
import { openTracing } from "../../lib/telemetry/tracing.ts";
import { openProviders } from "../../providers/registry.ts";
import { watchEngines } from "../../providers/routing/upstream-metrics.ts";
import { drainTimeoutMs, generationSettings, readImageConfig } from "./config.ts";
import { createImageService } from "./image-service.ts";

await runProcess(async () => {
  const config = readImageConfig();
  const log = createLog({ name: "image", level: config.LOG_LEVEL });
  const tracing = await openTracing(config, "image", log);
  const guard = createAddressGuard({ allowedCidrs: config.REFERENCE_ALLOWED_CIDRS });
  const fetchReference = createGuardedFetch({ guard });
  const measured = measureProcess(config, log);
  const { metrics, loopDelay } = measured;
  const offer = await openProviders({
    environment: config.environment,
    catalogDirectory: config.CATALOG_DIR,
    log,
  });
  const connections = await openGenerationProcess(config, "image", log, measured);
  watchEngines(metrics, offer.providers);
  const image = createImageService({
    ...offer,
    ...connections,
    ...generationSettings(config),
    fetchReference,
    log,
    ...measured,
    tracer: tracing.tracer,
  });
  const server = await startRpcServer({
    ...image,
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
      await fetchReference.close();
      await tracing.close();
    },
  };
});
