import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../commands/stack/child.ts";
import {
  environmentOf,
  listensFor,
  type ProcessName,
  processNames,
  scriptOf,
} from "../../../commands/stack/processes.ts";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import { ensureKeyFiles, type KeyFiles } from "../../../lib/identity/key-files.ts";
import { type Child, startChild } from "./child.ts";

/** All services, each a process of its own, as an operator would run them. */
export interface ProcessStack extends Readonly<Record<ProcessName, Child>> {
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  /** Base URLs of the RPC ports. */
  readonly accountUrl: string;
  readonly speechUrl: string;
  readonly imageUrl: string;
  readonly usageUrl: string;
  readonly destinationUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  /** The keys that the processes sign and check service tokens with. */
  readonly keyFiles: KeyFiles;
  /** Every process that was started so far, those that have ended included. */
  readonly started: readonly Child[];
  /** Starts a process that has ended again, on the port that it had; `env` is added to what it was started with. */
  restart(name: ProcessName, env?: Record<string, string>): Promise<void>;
  /** Stops everything in order. */
  stop(): Promise<void>;
}

/** What a stack runs on. */
export interface ProcessStackOptions {
  /** An empty database. */
  readonly databaseUrl: string;
  /**
   * `host:port` of Kafka brokers, on which the topics are made; a port where none is unless given, so that events wait in
   * the database.
   */
  readonly kafkaBrokers?: string;
  /** Added to the environment of speech: provider keys and addresses. */
  readonly speechEnv?: Record<string, string>;
  /** Added to the environment of image: the same, and what references may name. */
  readonly imageEnv?: Record<string, string>;
  /** Added to the environment of every process. */
  readonly env?: Record<string, string>;
}

/** Migrates the database, makes the topics and starts every service and the gateway on ports of the system's choice. */
export async function startProcessStack(options: ProcessStackOptions): Promise<ProcessStack> {
  const directory = await mkdtemp(join(tmpdir(), "stack-"));
  const processes = new StackProcesses();
  const stop = async () => {
    for (const child of processes.started.toReversed()) await child.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await runCommand("commands/migrate.ts", { DATABASE_URL: options.databaseUrl });
    const { kafkaBrokers } = options;
    if (kafkaBrokers !== undefined) await runCommand("commands/topics.ts", { KAFKA_BROKERS: kafkaBrokers });
    return await startStack(options, directory, processes, stop);
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

async function startStack(
  options: ProcessStackOptions,
  directory: string,
  processes: StackProcesses,
  stop: () => Promise<void>,
): Promise<ProcessStack> {
  const keyFiles = await ensureKeyFiles(directory);
  const keys = { inferenceKey: generateApiKey(), managementKey: generateApiKey() };
  const urls = await startProcesses(options, processes, keyFiles, keys);
  return {
    get account() {
      return processes.current("account");
    },
    get usage() {
      return processes.current("usage");
    },
    get destination() {
      return processes.current("destination");
    },
    get speech() {
      return processes.current("speech");
    },
    get image() {
      return processes.current("image");
    },
    get gateway() {
      return processes.current("gateway");
    },
    restUrl: `${urls.gateway}/api/v1`,
    accountUrl: urls.account ?? "",
    speechUrl: urls.speech ?? "",
    imageUrl: urls.image ?? "",
    usageUrl: urls.usage ?? "",
    destinationUrl: urls.destination ?? "",
    ...keys,
    keyFiles,
    started: processes.started,
    restart: (name, env) => processes.restart(name, env),
    stop,
  };
}

/** Starts each process once those are there that it calls. */
async function startProcesses(
  options: ProcessStackOptions,
  processes: StackProcesses,
  keyFiles: KeyFiles,
  keys: Pick<ProcessStack, "inferenceKey" | "managementKey">,
): Promise<Partial<Record<ProcessName, string>>> {
  const { databaseUrl } = options;
  const masterKeys = `test:${randomBytes(32).toString("base64")}`;
  const shared = { ...sharedEnv(options), ...options.env };
  const own: Partial<Record<ProcessName, Record<string, string>>> = {
    account: firstAccount(keys),
    speech: options.speechEnv ?? {},
    image: options.imageEnv ?? {},
  };
  const urls: Partial<Record<ProcessName, string>> = {};
  for (const name of processNames) {
    const environment = environmentOf(name, { databaseUrl, masterKeys, keyFiles, urls });
    urls[name] = await processes.start(name, { ...environment, ...shared, ...own[name] });
    if (name === "account") await processes.current(name).line((line) => line.includes("first account made"));
  }
  return urls;
}

function sharedEnv({ kafkaBrokers }: ProcessStackOptions): Record<string, string> {
  return { DRAIN_DELAY_MS: "0", METRICS_PORT: "off", KAFKA_BROKERS: kafkaBrokers ?? noBroker };
}

function firstAccount(keys: Pick<ProcessStack, "inferenceKey" | "managementKey">): Record<string, string> {
  return {
    BOOTSTRAP_CREDIT_USD: "1000",
    BOOTSTRAP_INFERENCE_KEY: keys.inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: keys.managementKey,
  };
}

/** The discard port, where nobody listens. */
const noBroker = "127.0.0.1:9";

class StackProcesses {
  readonly started: Child[] = [];
  readonly #running = new Map<ProcessName, { child: Child; port: number; env: Record<string, string> }>();

  /** Resolves with its base URL once it listens. */
  async start(name: ProcessName, env: Record<string, string>, port = 0): Promise<string> {
    const child = startChild(scriptOf(name), { env: { ...env, PORT: String(port) } });
    this.started.push(child);
    const bound = await child.listeningPort(listensFor(name));
    this.#running.set(name, { child, port: bound, env });
    return `http://127.0.0.1:${bound}`;
  }

  async restart(name: ProcessName, added: Record<string, string> = {}): Promise<void> {
    const { port, env } = this.#find(name);
    await this.start(name, { ...env, ...added }, port);
  }

  current(name: ProcessName): Child {
    return this.#find(name).child;
  }

  #find(name: ProcessName) {
    const found = this.#running.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }
}
