import { readServiceKey } from "../lib/identity/service-key.ts";
import { createTokenSigner } from "../lib/identity/service-token.ts";
import { readTlsFiles } from "../lib/rpc/port/tls-files.ts";
import { systemClock } from "../lib/runtime/clock.ts";
import { logListening } from "../lib/runtime/listening.ts";
import { runHosted } from "../lib/service/host.ts";
import { openLimits } from "../lib/service/open-limits.ts";
import { drainTimeoutMs } from "../lib/service/service-spec.ts";
import { listenForMetrics } from "../lib/telemetry/metrics-listener.ts";
import { createGateway } from "./app.ts";
import { createGatewayClients } from "./clients.ts";
import { gatewaySettings, readGatewayConfig } from "./config.ts";
import { readConsoleOf } from "./console/assets.ts";
import { limitRequests } from "./http/rate-limit.ts";

await runHosted({
  name: "gateway",
  readConfig: readGatewayConfig,
  async start(host, config) {
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
    const metricsListener = await listenForMetrics({ ...host, host: config.HOST, port: config.METRICS_PORT });
    host.onStop(() => metricsListener.close());
    const { limiter, shedder } = await openLimits(host, config);
    const gateway = createGateway({
      ...host,
      ...createGatewayClients(urls, signer, settings),
      admissions: [limitRequests(limiter, shedder)],
      settings,
      consoleFiles: await readConsoleOf(config),
      clock: systemClock,
    });
    const running = await gateway.listen({ host: config.HOST, port: config.PORT, tls });
    const drain = { delayMs: config.DRAIN_DELAY_MS, timeoutMs: drainTimeoutMs(config) };
    host.onStop(() => running.close(drain));
    logListening(host.log, "rest", config.HOST, running.port);
  },
});
