import { addressOf } from "../rpc/port/open-port.ts";
import { listenOnPort } from "../rpc/port/port-listener.ts";
import { type ConfigSpec, portOrOffVar } from "../runtime/config.ts";
import { logListening } from "../runtime/listening.ts";
import type { Log } from "../runtime/log.ts";
import type { Metrics } from "./metrics.ts";

/** Where a process serves its metrics whose other ports are not for operators; `off`: nowhere. */
export const metricsSpec = {
  METRICS_PORT: portOrOffVar({ default: 9464 }),
} as const satisfies ConfigSpec;

/** Where the metrics of a process are served whose other ports are not for operators. */
interface MetricsListenerOptions {
  readonly host: string;
  /** 0 lets the system choose; `off`: nowhere. */
  readonly port: number | "off";
  readonly metrics: Metrics;
  readonly log: Log;
}

interface MetricsListener {
  /** Undefined when it is switched off or could not be opened. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

const closeTimeoutMs = 500;

/**
 * Opens a port with `GET /metrics` and nothing else. A port that can't be opened is an error on the log and no more:
 * people's requests are served without it.
 */
export async function listenForMetrics(options: MetricsListenerOptions): Promise<MetricsListener> {
  const { host, port, metrics, log } = options;
  const closed: MetricsListener = { port: undefined, close: async () => undefined };
  if (port === "off") return closed;
  try {
    const listener = await listenOnPort({
      host: await addressOf(host),
      port,
      handle(request, response) {
        if (metrics.answer(request, response)) return;
        response.statusCode = 404;
        response.end();
      },
    });
    logListening(log, "metrics", host, listener.port);
    return { port: listener.port, close: () => listener.close({ timeoutMs: closeTimeoutMs }) };
  } catch (thrown) {
    log.error({ err: thrown, port }, "no metrics are told: METRICS_PORT can't be opened");
    return closed;
  }
}
