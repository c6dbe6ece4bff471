import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { ensureKeyFiles, type KeyFiles } from "../../lib/identity/key-files.ts";
import { type Child, startChild } from "./child.ts";

/** The processes of a stack. */
export type StackProcess = "account" | "speech" | "gateway";

/** The services built so far, each a process of its own, as an operator would run them. */
export interface ProcessStack extends Readonly<Record<StackProcess, Child>> {
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  /** Base URLs of the RPC ports. */
  readonly accountUrl: string;
  readonly speechUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  /** The keys that the processes sign and check service tokens with. */
  readonly keyFiles: KeyFiles;
  /** Every process that was started so far, those that have ended included. */
  readonly started: readonly Child[];
  /** Starts a process that has ended again, on the port that it had. */
  restart(name: StackProcess): Promise<void>;
  /** Stops everything in order. */
  stop(): Promise<void>;
}

const scripts: Readonly<Record<StackProcess, string>> = {
  account: "services/account/main.ts",
  speech: "services/speech/main.ts",
  gateway: "gateway/main.ts",
};

/** What a stack runs on. */
export interface ProcessStackOptions {
  /** An empty database. */
  readonly databaseUrl: string;
  /** Added to the environment of speech: provider keys and addresses. */
  readonly speechEnv?: Record<string, string>;
  /** Added to the environment of every process. */
  readonly env?: Record<string, string>;
}

/** Migrates the database and starts account, speech and gateway on ports of the system's choice. */
export async function startProcessStack(options: ProcessStackOptions): Promise<ProcessStack> {
  const directory = await mkdtemp(join(tmpdir(), "stack-"));
  const started: Child[] = [];
  const stop = async () => {
    for (const child of started.toReversed()) await child.stop();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    await migrate(options.databaseUrl);
    return await startProcesses(options, directory, started, stop);
  } catch (thrown) {
    await stop();
    throw thrown;
  }
}

async function migrate(databaseUrl: string): Promise<void> {
  const child = startChild("commands/migrate.ts", { env: { DATABASE_URL: databaseUrl } });
  if ((await child.exited) !== 0) throw new Error(`migrate failed:\n${child.lines.join("\n")}`);
}

async function startProcesses(
  options: ProcessStackOptions,
  directory: string,
  started: Child[],
  stop: () => Promise<void>,
): Promise<ProcessStack> {
  const keyFiles = await ensureKeyFiles(directory);
  const inferenceKey = generateApiKey();
  const managementKey = generateApiKey();
  const running = new Map<StackProcess, { child: Child; port: number; env: Record<string, string> }>();
  const start = async (name: StackProcess, env: Record<string, string>) => {
    const common = { HOST: "127.0.0.1", DRAIN_DELAY_MS: "0", SERVICE_JWKS_FILE: keyFiles.jwksFile };
    const PORT = String(running.get(name)?.port ?? 0);
    const child = startChild(scripts[name], { env: { ...common, ...options.env, ...env, PORT } });
    started.push(child);
    const port = await child.listeningPort(name === "gateway" ? "rest" : "rpc");
    running.set(name, { child, port, env });
    return `http://127.0.0.1:${port}`;
  };
  const current = (name: StackProcess) => {
    const found = running.get(name);
    if (found === undefined) throw new Error(`${name} was not started`);
    return found;
  };
  const accountUrl = await start("account", {
    DATABASE_URL: options.databaseUrl,
    BOOTSTRAP_INFERENCE_KEY: inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: managementKey,
  });
  await current("account").child.line((line) => line.includes("first account made"));
  const SERVICE_KEY_FILE = keyFiles.keyFile("speech");
  const speechUrl = await start("speech", {
    ACCOUNT_URL: accountUrl,
    SERVICE_KEY_FILE,
    ...options.speechEnv,
  });
  const restUrl = `${await start("gateway", {
    ACCOUNT_URL: accountUrl,
    SPEECH_URL: speechUrl,
    SERVICE_KEY_FILE: keyFiles.keyFile("gateway"),
  })}/api/v1`;
  const urls = { restUrl, accountUrl, speechUrl };
  return {
    ...{ ...urls, inferenceKey, managementKey, keyFiles, started, stop },
    get account() {
      return current("account").child;
    },
    get speech() {
      return current("speech").child;
    },
    get gateway() {
      return current("gateway").child;
    },
    restart: async (name) => void (await start(name, current(name).env)),
  };
}
