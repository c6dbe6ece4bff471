import { readServiceKey } from "../lib/identity/service-key.ts";
import { createTokenSigner } from "../lib/identity/service-token.ts";
import { openLoadShedder } from "../lib/rate-limit/open-load-shedder.ts";
import { openRequestLimiter } from "../lib/rate-limit/open-request-limiter.ts";
import { readTlsFiles } from "../lib/rpc/port/tls-files.ts";
import { systemClock } from "../lib/runtime/clock.ts";
import { logListening } from "../lib/runtime/listening.ts";
import { createLog } from "../lib/runtime/log.ts";
import { runProcess } from "../lib/service/process.ts";
import { measureLimiter, watchLoad } from "../lib/telemetry/metrics-limits.ts";
import { listenForMetrics } from "../lib/telemetry/metrics-listener.ts";
import { measureProcess } from "../lib/telemetry/metrics-process.ts";
import { openTracing } from "../lib/telemetry/tracing.ts";
import { createGateway } from "./app.ts";
import { createGatewayClients } from "./clients.ts";
import { drainTimeoutMs, gatewaySettings, readGatewayConfig } from "./config.ts";
import { limitRequests } from "./http/rate-limit.ts";

await runProcess(async () => {
  const config = readGatewayConfig();
  const log = createLog({ name: "gateway", level: config.LOG_LEVEL });
  const tracing = await openTracing(config, "gateway", log);
  const tls = await readTlsFiles(config);
  const signer = createTokenSigner(await readServiceKey(config.SERVICE_KEY_FILE, "gateway"));
  const settings = gatewaySettings(config);
  const urls = {
    account: config.ACCOUNT_URL,
    speech: config.SPEECH_URL,
    image: config.IMAGE_URL,
    usage: config.USAGE_URL,
    destination: config.DESTINATION_URL,
  };
  const clients = createGatewayClients(urls, signer, settings);
  const measured = measureProcess(config, log);
  const { metrics, loopDelay } = measured;
  const limiter = measureLimiter(metrics, await openRequestLimiter(config, log));
  const shedder = openLoadShedder(config, loopDelay);
  watchLoad(metrics, shedder);
  const admissions = [limitRequests(limiter, shedder)];
  const gateway = createGateway({
    ...clients,
    admissions,
    settings,
    log,
    ...measured,
    tracer: tracing.tracer,
    clock: systemClock,
  });
  const running = await gateway.listen({ host: config.HOST, port: config.PORT, tls });
  const port = config.METRICS_PORT;
  const metricsListener = await listenForMetrics({ host: config.HOST, port, metrics, log });
  logListening(log, "rest", config.HOST, running.port);
  return {
    log,
    async stop() {
      await running.close({ delayMs: config.DRAIN_DELAY_MS, timeoutMs: drainTimeoutMs(config) });
      await Promise.all([limiter.close(), metricsListener.close()]);
      await tracing.close();
    },
  };
});
