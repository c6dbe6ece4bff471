import { processNames } from "../commands/stack/processes.ts";
import { generateApiKey } from "../lib/identity/api-key.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { startEmbeddedPostgres } from "../standalone/embedded-postgres.ts";
import { kafkaUnavailable, startKafkaBroker } from "../test/support/kafka/kafka-broker.ts";
import { removeDataDirectory, temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import { startChild } from "../test/support/processes/child.ts";
import { startProcessStack } from "../test/support/processes/process-stack.ts";

/** No limit stands in the way of a load. */
const unlimited = { RATE_LIMIT_PER_MINUTE: "1000000", MAX_INFLIGHT_PER_KEY: "100000", METRICS_PORT: "0" };

/** Something that answers requests. */
export interface Target {
  readonly name: string;
  /** What the path of an operation is added to, such as `http://127.0.0.1:8080/api/v1`. */
  readonly baseUrl: string;
  /** Whether it speaks the upstream's own interface. */
  readonly isProxy: boolean;
  readonly apiKey: string;
  /** Process ids by name of those whose CPU counts: all of ours but PostgreSQL and Kafka. */
  readonly processes: Readonly<Record<string, number>>;
  /** Where account's metrics are; undefined where there are none. */
  readonly accountMetricsUrl?: string;
  stop(): Promise<void>;
}

/** The stand-in upstream. */
export async function startUpstream() {
  const child = startChild("test/upstreams/openai/openai-main.ts");
  const baseUrl = await child.line((line) => line.startsWith("http://"));
  return { baseUrl, stop: () => child.stop() };
}

/** The yardstick: a proxy that only pipes, to the upstream's own interface. */
export async function startPlainProxy(upstreamUrl: string): Promise<Target> {
  const child = startChild("bench/plain-proxy.ts", { args: ["--upstream", upstreamUrl] });
  const baseUrl = await child.line((line) => line.startsWith("http://"));
  return {
    name: "plain proxy",
    baseUrl: `${baseUrl}/v1`,
    isProxy: true,
    apiKey: "none",
    processes: { proxy: child.pid },
    stop: async () => void (await child.stop()),
  };
}

/** Everything in one process. */
export async function startStandalone(upstreamUrl: string): Promise<Target> {
  const dataDir = await temporaryDirectory();
  const apiKey = generateApiKey();
  const child = startChild("standalone/main.ts", {
    env: {
      PORT: "0",
      RPC_PORT: "0",
      DATA_DIR: dataDir,
      BOOTSTRAP_INFERENCE_KEY: apiKey,
      BOOTSTRAP_CREDIT_USD: "1000000",
      ...unlimited,
      OPENAI_API_KEY: "test-key",
      OPENAI_BASE_URL: upstreamUrl,
    },
  });
  const port = await child.listeningPort("rest");
  const metricsPort = await child.listeningPort("metrics");
  return {
    name: "standalone",
    baseUrl: `http://127.0.0.1:${port}/api/v1`,
    isProxy: false,
    apiKey,
    processes: { standalone: child.pid },
    accountMetricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    async stop() {
      await child.stop();
      await removeDataDirectory(dataDir);
    },
  };
}

/**
 * The gateway and every service as processes of their own, on Kafka where its jars have been fetched; `env` is added to
 * the environment of each.
 */
export async function startProcesses(upstreamUrl: string, env: Record<string, string> = {}): Promise<Target> {
  const dataDir = await temporaryDirectory();
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
  const providerEnv = { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: upstreamUrl };
  const broker = kafkaUnavailable() === undefined ? await startKafkaBroker() : undefined;
  const stack = await startProcessStack({
    databaseUrl: postgres.url,
    ...(broker === undefined ? {} : { kafkaBrokers: broker.brokers.join() }),
    env: { ...unlimited, ...providerEnv, ...env },
  });
  return {
    name: "processes",
    baseUrl: stack.restUrl,
    isProxy: false,
    apiKey: stack.inferenceKey,
    processes: Object.fromEntries(processNames.map((name) => [name, stack.processes.child(name).pid])),
    accountMetricsUrl: `${stack.urls.account}/metrics`,
    async stop() {
      await stack.stop();
      await broker?.stop();
      await postgres.stop();
      await removeDataDirectory(dataDir);
    },
  };
}
