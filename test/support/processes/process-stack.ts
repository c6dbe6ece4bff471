import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../commands/stack/child.ts";
import { type ProcessGround, type ProcessName, processNames } from "../../../commands/stack/processes.ts";
import { generateApiKey } from "../../../lib/identity/api-key.ts";
import { ensureKeyFiles, type KeyFiles } from "../../../lib/identity/key-files.ts";
import { StackProcesses } from "./stack-processes.ts";

/** All services, each a process of its own, as an operator would run them. */
export interface ProcessStack {
  readonly processes: StackProcesses;
  /** Where each is reached. */
  readonly urls: Readonly<Record<ProcessName, string>>;
  /** Base URL of the REST interface, which ends in `/api/v1`. */
  readonly restUrl: string;
  readonly inferenceKey: string;
  readonly managementKey: string;
  /** The keys that the processes sign and check service tokens with. */
  readonly keyFiles: KeyFiles;
  /** Stops everything in order. */
  stop(): Promise<void>;
}

/** What a stack runs on. */
export interface ProcessStackOptions {
  /** An empty database. */
  readonly databaseUrl: string;
  /** `host:port` of Kafka brokers, on which the topics are made; no broker unless given. */
  readonly kafkaBrokers?: string;
  /** What the first account has; 1000 unless given. */
  readonly creditUsd?: string;
  /** Added to the environment of every process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Brings an empty database up to date and makes keys in a folder. */
export async function prepareGround(
  databaseUrl: string,
  folder: string,
): Promise<Omit<ProcessGround, "urls">> {
  await runCommand("commands/migrate.ts", { DATABASE_URL: databaseUrl });
  const masterKeys = `test:${randomBytes(32).toString("base64")}`;
  return { databaseUrl, masterKeys, keyFiles: await ensureKeyFiles(folder) };
}

/** Migrates the database, makes the topics and starts every service and the gateway on ports of the system's choice. */
export async function startProcessStack(options: ProcessStackOptions): Promise<ProcessStack> {
  const { databaseUrl, kafkaBrokers, creditUsd = "1000", env } = options;
  await using made = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "stack-"));
  made.defer(() => rm(folder, { recursive: true, force: true }));
  const ground = await prepareGround(databaseUrl, folder);
  const kafka = kafkaBrokers === undefined ? {} : { KAFKA_BROKERS: kafkaBrokers };
  if (kafkaBrokers !== undefined) await runCommand("commands/topics.ts", kafka);
  const processes = new StackProcesses();
  made.defer(() => processes.stopAll());
  const keys = { inferenceKey: generateApiKey(), managementKey: generateApiKey() };
  const urls = await processes.start({
    services: processNames,
    ground,
    env: { ...kafka, ...env },
    envOf: { account: firstAccount(keys, creditUsd) },
  });
  await processes.child("account").line((line) => line.includes("first account made"));
  const kept = made.move();
  const restUrl = `${urls.gateway}/api/v1`;
  return { processes, urls, restUrl, ...keys, keyFiles: ground.keyFiles, stop: () => kept.disposeAsync() };
}

function firstAccount(
  keys: Pick<ProcessStack, "inferenceKey" | "managementKey">,
  creditUsd: string,
): Record<string, string> {
  return {
    BOOTSTRAP_CREDIT_USD: creditUsd,
    BOOTSTRAP_INFERENCE_KEY: keys.inferenceKey,
    BOOTSTRAP_MANAGEMENT_KEY: keys.managementKey,
  };
}
