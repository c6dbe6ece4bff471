import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { processNames } from "../commands/stack/processes.ts";
import { generateApiKey } from "../lib/identity/api-key.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { startEmbeddedPostgres } from "../standalone/embedded-postgres.ts";
import { kafkaUnavailable, startKafkaBroker } from "../test/support/kafka/kafka-broker.ts";
import { postmasterOf } from "../test/support/postgres/postmaster.ts";
import { removeDataDirectory, temporaryDirectory } from "../test/support/postgres/temporary-directory.ts";
import { type Child, startChild } from "../test/support/processes/child.ts";
import { startProcessStack } from "../test/support/processes/process-stack.ts";
import { redisIsInstalled, startRedis } from "../test/support/processes/redis-server.ts";
import { hasFreshBundle } from "./fresh-bundle.ts";
import { descendantsOf, programOf } from "./process-usage.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

/** More than any benchmark pays for. */
const creditUsd = "1000000";

/** No limit stands in the way of a load. */
const unlimited = { RATE_LIMIT_PER_MINUTE: "1000000", MAX_INFLIGHT_PER_KEY: "100000", METRICS_PORT: "0" };

/** Has processes take every request, also where the machine has so much other work that they would turn some away. */
export const patient: Readonly<Record<string, string>> = { MAX_LOOP_DELAY_MS: "60000" };

/** Something that answers requests. */
export interface Target {
  readonly name: "plain proxy" | "standalone" | "processes";
  /** What the path of an operation is added to, such as `http://127.0.0.1:8080/api/v1`. */
  readonly baseUrl: string;
  /** Whether it speaks the upstream's own interface. */
  readonly isProxy: boolean;
  readonly apiKey: string;
  /** Those of ours. */
  readonly processes: Readonly<Record<string, Child>>;
  /** Process ids by name of what it stores in: PostgreSQL and Kafka. */
  readonly stores: Readonly<Record<string, number>>;
  /** Its PostgreSQL, a secret; undefined where it has none, or one that it keeps to itself. */
  readonly databaseUrl?: string;
  /** Where account's metrics are; undefined where there are none. */
  readonly accountMetricsUrl?: string;
  /** What is missing on this machine, a line each. */
  readonly leftOut: readonly string[];
  stop(): Promise<void>;
}

/** Process ids of those of ours. */
export function pidsOf({ processes }: Target): readonly number[] {
  return Object.values(processes).map(({ pid }) => pid);
}

/** The scripts that a target's processes run, by their paths from the root: the sources, or what a build made of them. */
export function scriptsOf(target: Target): readonly string[] {
  return pidsOf(target).map((pid) => {
    const [, ...words] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return words.find((word) => word.startsWith(root))?.slice(root.length) ?? "?";
  });
}

/** How a target is started, on the stand-in upstream's address; `env` is added to the environment of its processes. */
export type Launch = (upstreamUrl: string, env?: Record<string, string>) => Promise<Target>;

/** The forms in which the gateway runs. */
export const formLaunches = {
  standalone: startStandalone,
  processes: startProcesses,
} as const satisfies Record<string, Launch>;

/** Starts what is told, on one stand-in upstream, for as long as `use` runs; a signal that ends this process ends them first. */
export async function withTargets<T>(
  launches: readonly Launch[],
  env: Record<string, string>,
  use: (targets: readonly Target[]) => Promise<T>,
): Promise<T> {
  // The launchers take it then.
  if (hasFreshBundle(root)) process.env.USE_BUNDLE ??= "1";
  const started = new AsyncDisposableStack();
  const leave = (signal: NodeJS.Signals) => {
    void started.disposeAsync().finally(() => process.kill(process.pid, signal));
  };
  process.once("SIGINT", leave).once("SIGTERM", leave);
  try {
    const upstream = await startUpstream();
    started.defer(async () => void (await upstream.stop()));
    const targets: Target[] = [];
    for (const launch of launches) {
      const target = await launch(upstream.baseUrl, env);
      started.defer(() => target.stop());
      targets.push(target);
    }
    return await use(targets);
  } finally {
    process.off("SIGINT", leave).off("SIGTERM", leave);
    await started.disposeAsync();
  }
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
    processes: { proxy: child },
    stores: {},
    leftOut: [],
    stop: async () => void (await child.stop()),
  };
}

/** Everything in one process, with the PostgreSQL that it brings; `env` is added to its environment. */
export async function startStandalone(
  upstreamUrl: string,
  env: Record<string, string> = {},
): Promise<Target> {
  const dataDir = await temporaryDirectory();
  const apiKey = generateApiKey();
  const child = startChild("standalone/main.ts", {
    env: {
      PORT: "0",
      RPC_PORT: "0",
      DATA_DIR: dataDir,
      BOOTSTRAP_INFERENCE_KEY: apiKey,
      BOOTSTRAP_CREDIT_USD: creditUsd,
      ...unlimited,
      ...upstreamEnv(upstreamUrl),
      ...env,
    },
  });
  const port = await child.listeningPort("rest");
  const metricsPort = await child.listeningPort("metrics");
  return {
    name: "standalone",
    baseUrl: `http://127.0.0.1:${port}/api/v1`,
    isProxy: false,
    apiKey,
    processes: { standalone: child },
    stores: found({ PostgreSQL: await postmasterOf(dataDir) }),
    accountMetricsUrl: `http://127.0.0.1:${metricsPort}/metrics`,
    leftOut: [],
    async stop() {
      await child.stop();
      await removeDataDirectory(dataDir);
    },
  };
}

/**
 * The gateway and every service as processes of their own, on PostgreSQL, and on Kafka and Redis where they are; `env`
 * is added to the environment of each.
 */
export async function startProcesses(upstreamUrl: string, env: Record<string, string> = {}): Promise<Target> {
  await using made = new AsyncDisposableStack();
  const dataDir = await temporaryDirectory();
  made.defer(() => removeDataDirectory(dataDir));
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog });
  made.defer(() => postgres.stop());
  const noKafka = kafkaUnavailable();
  const broker = noKafka === undefined ? await startKafkaBroker() : undefined;
  made.defer(async () => void (await broker?.stop()));
  const redis = redisIsInstalled() ? made.use(await startRedis()) : undefined;
  const stack = await startProcessStack({
    databaseUrl: postgres.url,
    creditUsd,
    ...(broker === undefined ? {} : { kafkaBrokers: broker.brokers.join() }),
    env: {
      ...unlimited,
      ...(redis === undefined ? {} : { REDIS_URL: redis.url }),
      ...upstreamEnv(upstreamUrl),
      ...env,
    },
  });
  made.defer(() => stack.stop());
  const kafka = descendantsOf(process.pid).find((pid) => programOf(pid) === "java");
  const kept = made.move();
  return {
    name: "processes",
    baseUrl: stack.restUrl,
    isProxy: false,
    apiKey: stack.inferenceKey,
    processes: Object.fromEntries(processNames.map((name) => [name, stack.processes.child(name)])),
    stores: found({ PostgreSQL: await postmasterOf(dataDir), Kafka: kafka }),
    databaseUrl: postgres.url,
    accountMetricsUrl: `${stack.urls.account}/metrics`,
    leftOut: [
      ...(noKafka === undefined
        ? []
        : [`processes run without Kafka (${noKafka}): events wait in PostgreSQL`]),
      ...(redis === undefined ? ["processes run without Redis: each counts its limits for itself"] : []),
    ],
    stop: () => kept.disposeAsync(),
  };
}

function upstreamEnv(upstreamUrl: string): Record<string, string> {
  return { OPENAI_API_KEY: "test-key", OPENAI_BASE_URL: upstreamUrl };
}

function found(pids: Readonly<Record<string, number | undefined>>): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(pids).flatMap(([name, pid]) => (pid === undefined ? [] : [[name, pid]])),
  );
}
