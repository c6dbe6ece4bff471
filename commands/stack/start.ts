import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { ensureKeyFiles } from "../../lib/identity/key-files.ts";
import { parseUsd } from "../../lib/money/nano-usd.ts";
import type { Log } from "../../lib/runtime/log.ts";
import { StartError } from "../../lib/runtime/start-error.ts";
import { ensureMasterKeys } from "../../lib/secrets/master-key-file.ts";
import { Teardown } from "../../lib/service/teardown.ts";
import { type BootstrapResult, bootstrapDatabase } from "../../services/account/accounts/bootstrap.ts";
import { runCommand } from "./child.ts";
import { type GroundOptions, startDatabase, startKafka, startRedis } from "./ground.ts";
import { KeptProcesses } from "./kept-processes.ts";
import { environmentOf, type ProcessGround, type ProcessName } from "./processes.ts";
import { openBalancers, StackReplicas } from "./replicas.ts";

interface StackOptions {
  /** Made if it doesn't exist: database, broker's log, keys and the processes' lines. */
  readonly dataDir: string;
  /** Of each service. */
  readonly replicas: number;
  /** 0 lets the system choose. */
  readonly ports: Readonly<Record<ProcessName, number>>;
  /** Of every process. DATABASE_URL, KAFKA_BROKERS and REDIS_URL name what need not be started. */
  readonly env: Readonly<Record<string, string>>;
  readonly log: Log;
  /** Gives up the start. */
  readonly signal: AbortSignal;
  /** Hears every line of every process. */
  onLine(name: string, line: string): void;
  /** Hears what people want to know meanwhile. */
  onNote(note: string): void;
}

/** A stack that serves. */
export interface Stack {
  /** Where each service is reached, without a slash at its end. */
  readonly urls: Readonly<Record<ProcessName, string>>;
  /** The first account, when this start made it; its keys are stored nowhere. */
  readonly firstAccount: BootstrapResult | undefined;
  readonly replicas: StackReplicas;
  /** Resolves with a line that says why, when PostgreSQL, Kafka or Redis has ended by itself. */
  readonly failed: Promise<string>;
  /** Drains and ends everything in the opposite order of its start. */
  stop(): Promise<void>;
  /** Kills everything at once. */
  abandon(): void;
}

const firstCreditUsd = "10";

/**
 * Starts a whole stack on this machine: PostgreSQL, Kafka and Redis, schemas and topics, then every service in processes
 * of its own. Throws StartError with one line when something is missing; what was started is ended.
 */
export async function startStack(options: StackOptions): Promise<Stack> {
  const teardown = new Teardown(options.log);
  try {
    return await start(options, teardown);
  } catch (thrown) {
    await teardown.run();
    throw thrown;
  }
}

async function start(options: StackOptions, teardown: Teardown): Promise<Stack> {
  const { dataDir, replicas: count, ports, log, signal, onLine, onNote } = options;
  const kept = new KeptProcesses();
  teardown.add(async () => kept.close());
  const failure = Promise.withResolvers<string>();
  const ground: GroundOptions = { dataDir, log, signal, kept, teardown, onFailure: failure.resolve };
  await mkdir(dataDir, { recursive: true });
  // A port that is taken is found before anything is started for it.
  const balancers = await openBalancers(ports);
  teardown.add(async () => void (await Promise.all(Object.values(balancers).map((each) => each.close()))));
  const env = await startGround(options, ground);
  signal.throwIfAborted();

  const keyFiles = await ensureKeyFiles(join(dataDir, "keys"));
  const madeKeys = await ensureMasterKeys(join(dataDir, "keys", "master-keys"));
  const masterKeys = env.MASTER_KEYS ?? madeKeys;
  await prepare(env);
  signal.throwIfAborted();

  const urls = Object.fromEntries(
    Object.entries(balancers).map(([service, { port }]) => [service, `http://127.0.0.1:${port}`]),
  ) as Stack["urls"];
  const stands: ProcessGround = { databaseUrl: env.DATABASE_URL, masterKeys, keyFiles, urls };
  const defaults = {
    // A process that is alone has nobody who takes over while it drains.
    ...(count === 1 ? { DRAIN_DELAY_MS: "0" } : {}),
    // Processes start in two thirds of the time.
    NODE_COMPILE_CACHE: join(dataDir, "compile-cache"),
  };
  const replicas = new StackReplicas(balancers, {
    count,
    environmentOf: (service) => ({ ...defaults, ...env, ...environmentOf(service, stands) }),
    onLine,
    onNote,
    kept,
    log,
  });
  teardown.add(() => replicas.stop());
  signal.addEventListener("abort", () => replicas.killAll(), { once: true });
  await replicas.start();
  return {
    urls,
    // Its keys are shown once, so all else must have worked.
    firstAccount: await makeFirstAccount(env),
    replicas,
    failed: failure.promise,
    stop: async () => void (await teardown.run()),
    abandon: () => kept.close(),
  };
}

type GroundEnvironment = Record<string, string> & Record<"DATABASE_URL" | "KAFKA_BROKERS", string>;

/** Starts what the environment does not name; returns the environment that leads there. */
async function startGround(
  { env, replicas, onNote }: StackOptions,
  ground: GroundOptions,
): Promise<GroundEnvironment> {
  const redisUrl = env.REDIS_URL ?? (await startRedis(ground));
  if (redisUrl === undefined) {
    if (replicas > 1) {
      throw new StartError("redis-server is not installed: install it, set REDIS_URL, or run one replica");
    }
    onNote("redis-server is not installed: each process counts its limits for itself");
  }
  const [DATABASE_URL, KAFKA_BROKERS] = await Promise.all([
    env.DATABASE_URL ?? startDatabase(ground),
    env.KAFKA_BROKERS ?? startKafka(ground),
  ]);
  return { ...env, DATABASE_URL, KAFKA_BROKERS, ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }) };
}

/** Brings the schemas up to date and makes the topics. */
async function prepare(env: GroundEnvironment): Promise<void> {
  await Promise.all(
    ["commands/migrate.ts", "commands/topics.ts"].map((script) =>
      runCommand(script, env, { detached: true }),
    ),
  );
}

/** Undefined where there is one. */
async function makeFirstAccount(env: GroundEnvironment): Promise<BootstrapResult | undefined> {
  const keys = { inferenceKey: env.BOOTSTRAP_INFERENCE_KEY, managementKey: env.BOOTSTRAP_MANAGEMENT_KEY };
  const creditNanoUsd = parseUsd(env.BOOTSTRAP_CREDIT_USD ?? firstCreditUsd);
  return bootstrapDatabase(env.DATABASE_URL, { ...keys, creditNanoUsd });
}
