import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { ensureKeyFiles, type KeyFiles } from "../../lib/identity/key-files.ts";
import { type Child, startChild } from "./child.ts";

/** The processes of a stack. */
export type StackProcess = "account" | "speech" | "image" | "gateway";

/** The services built so far, each a process of its own, as an operator would run them. */
export interface ProcessStack extends Readonly<Record<StackProcess, Child>> {
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  /** Base URLs of the RPC ports. */
  readonly accountUrl: string;
  readonly speechUrl: string;
  readonly imageUrl: string;
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
  /** Added to the environment of speech: provider keys and addresses. */
  readonly speechEnv?: Record<string, string>;
  /** Added to the environment of image: the same, and what references may name. */
  readonly imageEnv?: Record<string, string>;
  /** Added to the environment of every process. */
  readonly env?: Record<string, string>;
}

const scripts: Readonly<Record<StackProcess, string>> = {
  account: "services/account/main.ts",
  speech: "services/speech/main.ts",
  image: "services/image/main.ts",
  gateway: "gateway/main.ts",
};

/** Migrates the database and starts account, speech, image and gateway on ports of the system's choice. */
export async function startProcessStack(options: ProcessStackOptions): Promise<ProcessStack> {
  const directory = await mkdtemp(join(tmpdir(), "stack-"));
  const processes = new StackProcesses();
  const stop = async () => {
    for (const child of processes.started.toReversed()) await child.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await migrate(options.databaseUrl);
    return await startStack(options, directory, processes, stop);
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

async function migrate(databaseUrl: string): Promise<void> {
  const child = startChild("commands/migrate.ts", { env: { DATABASE_URL: databaseUrl } });
  if ((await child.exited) !== 0) throw new Error(`migrate failed:\n${child.lines.join("\n")}`);
}

async function startStack(
  options: ProcessStackOptions,
  directory: string,
  processes: StackProcesses,
  stop: () => Promise<void>,
): Promise<ProcessStack> {
  const keyFiles = await ensureKeyFiles(directory);
  const common = { HOST: "127.0.0.1", DRAIN_DELAY_MS: "0", SERVICE_JWKS_FILE: keyFiles.jwksFile };
  const inferenceKey = generateApiKey();
  const managementKey = generateApiKey();
  const start: StartProcess = (name, env) => processes.start(name, { ...common, ...options.env, ...env });
  const accountUrl = await start("account", {
    DATABASE_URL: options.databaseUrl,
    BOOTSTRAP_INFERENCE_KEY: inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: managementKey,
  });
  await processes.current("account").line((line) => line.includes("first account made"));
  const urls = await startServices(start, accountUrl, keyFiles, options);
  return {
    get account() {
      return processes.current("account");
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

type StartProcess = (name: StackProcess, env: Record<string, string>) => Promise<string>;

/** Starts what stands around account, the gateway last. */
async function startServices(
  start: StartProcess,
  accountUrl: string,
  keyFiles: KeyFiles,
  { speechEnv, imageEnv }: ProcessStackOptions,
): Promise<Pick<ProcessStack, "speechUrl" | "imageUrl" | "restUrl">> {
  const calling = (issuer: "speech" | "image" | "gateway") => ({
    ACCOUNT_URL: accountUrl,
    SERVICE_KEY_FILE: keyFiles.keyFile(issuer),
  });
  const speechUrl = await start("speech", { ...calling("speech"), ...speechEnv });
  const imageUrl = await start("image", { ...calling("image"), ...imageEnv });
  const gatewayUrl = await start("gateway", {
    ...calling("gateway"),
    SPEECH_URL: speechUrl,
    IMAGE_URL: imageUrl,
  });
  return { speechUrl, imageUrl, restUrl: `${gatewayUrl}/api/v1` };
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
