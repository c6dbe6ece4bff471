import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { ensureKeyFiles, type KeyFiles } from "../../lib/identity/key-files.ts";
import { type Child, startChild } from "./child.ts";

/** The processes of a stack. */
export type StackProcess = "account" | "usage" | "speech" | "image" | "gateway";

/** The services built so far, each a process of its own, as an operator would run them. */
export interface ProcessStack extends Readonly<Record<StackProcess, Child>> {
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  /** Base URLs of the RPC ports. */
  readonly accountUrl: string;
  readonly speechUrl: string;
  readonly imageUrl: string;
  readonly usageUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  /** The keys that the processes sign and check service tokens with. */
  readonly keyFiles: KeyFiles;
  /** Every process that was started so far, those that have ended included. */
  readonly started: readonly Child[];
  /** Starts a process that has ended again, on the port that it had; `env` is added to what it was started with. */
  restart(name: StackProcess, env?: Record<string, string>): Promise<void>;
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

const scripts: Readonly<Record<StackProcess, string>> = {
  account: "services/account/main.ts",
  usage: "services/usage/main.ts",
  speech: "services/speech/main.ts",
  image: "services/image/main.ts",
  gateway: "gateway/main.ts",
};

/** Migrates the database, makes the topics and starts account, usage, speech, image and gateway on ports of the system's choice. */
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

/** Runs a command of an operator to its end. Throws with what it printed when it fails. */
export async function runCommand(script: string, env: Record<string, string>): Promise<void> {
  const child = startChild(script, { env });
  if ((await child.exited) !== 0) throw new Error(`${script} failed:\n${child.lines.join("\n")}`);
}

async function startStack(
  options: ProcessStackOptions,
  directory: string,
  processes: StackProcesses,
  stop: () => Promise<void>,
): Promise<ProcessStack> {
  const keyFiles = await ensureKeyFiles(directory);
  const common = {
    HOST: "127.0.0.1",
    DRAIN_DELAY_MS: "0",
    SERVICE_JWKS_FILE: keyFiles.jwksFile,
    KAFKA_BROKERS: options.kafkaBrokers ?? noBroker,
  };
  const inferenceKey = generateApiKey();
  const managementKey = generateApiKey();
  const start: StartProcess = (name, env) => processes.start(name, { ...common, ...options.env, ...env });
  const accountUrl = await start("account", {
    DATABASE_URL: options.databaseUrl,
    ...accountSecrets(),
    BOOTSTRAP_INFERENCE_KEY: inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: managementKey,
  });
  await processes.current("account").line((line) => line.includes("first account made"));
  const urls = await startServices(start, accountUrl, keyFiles, options);
  return {
    get account() {
      return processes.current("account");
    },
    get usage() {
      return processes.current("usage");
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
    ...urls,
    accountUrl,
    inferenceKey,
    managementKey,
    keyFiles,
    started: processes.started,
    restart: (name, env) => processes.restart(name, env),
    stop,
  };
}

function accountSecrets(): Record<string, string> {
  return { MASTER_KEYS: `test:${randomBytes(32).toString("base64")}`, BOOTSTRAP_CREDIT_USD: "1000" };
}

/** The discard port, where nobody listens. */
const noBroker = "127.0.0.1:9";

type StartProcess = (name: StackProcess, env: Record<string, string>) => Promise<string>;

/** Starts what stands around account, the gateway last. */
async function startServices(
  start: StartProcess,
  accountUrl: string,
  keyFiles: KeyFiles,
  { databaseUrl, speechEnv, imageEnv }: ProcessStackOptions,
): Promise<Pick<ProcessStack, "usageUrl" | "speechUrl" | "imageUrl" | "restUrl">> {
  const calling = (issuer: Exclude<StackProcess, "account">) => ({
    ACCOUNT_URL: accountUrl,
    SERVICE_KEY_FILE: keyFiles.keyFile(issuer),
  });
  const usageUrl = await start("usage", { ...calling("usage"), DATABASE_URL: databaseUrl });
  const speechUrl = await start("speech", { ...calling("speech"), ...speechEnv });
  const imageUrl = await start("image", { ...calling("image"), ...imageEnv });
  const gatewayUrl = await start("gateway", {
    ...calling("gateway"),
    SPEECH_URL: speechUrl,
    IMAGE_URL: imageUrl,
    USAGE_URL: usageUrl,
  });
  return { usageUrl, speechUrl, imageUrl, restUrl: `${gatewayUrl}/api/v1` };
}

class StackProcesses {
  readonly started: Child[] = [];
  readonly #running = new Map<StackProcess, { child: Child; port: number; env: Record<string, string> }>();

  /** Resolves with its base URL once it listens. */
  async start(name: StackProcess, env: Record<string, string>, port = 0): Promise<string> {
    const child = startChild(scripts[name], { env: { ...env, PORT: String(port) } });
    this.started.push(child);
    const bound = await child.listeningPort(name === "gateway" ? "rest" : "rpc");
    this.#running.set(name, { child, port: bound, env });
    return `http://127.0.0.1:${bound}`;
  }

  async restart(name: StackProcess, added: Record<string, string> = {}): Promise<void> {
    const { port, env } = this.#find(name);
    await this.start(name, { ...env, ...added }, port);
  }

  current(name: StackProcess): Child {
    return this.#find(name).child;
  }

  #find(name: StackProcess) {
    const found = this.#running.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  }
}
