/**
 * The services as an operator runs them, in one or two copies, on a Kafka broker and a PostgreSQL of their own, every
 * part of which a test can kill and start again. Each side calls its own: gateway a calls speech a, which calls account a.
 */

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectAdmin } from "../../commands/cli/connect.ts";
import { runCommand } from "../../commands/stack/child.ts";
import type { ProcessName } from "../../commands/stack/processes.ts";
import { AccountKind } from "../../gen/media/account/v1/account_pb.ts";
import type { KeyFiles } from "../../lib/identity/key-files.ts";
import { builtInCatalogDirectory } from "../../providers/catalog/load.ts";
import { type KafkaBroker, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { startChild } from "../support/processes/child.ts";
import { prepareGround } from "../support/processes/process-stack.ts";
import { type ServicesOptions, StackProcesses } from "../support/processes/stack-processes.ts";
import { startTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import {
  type OpenAiUpstream,
  type OpenAiUpstreamOptions,
  startOpenAiUpstream,
} from "../upstreams/openai/openai.ts";
import { type CrashDatabase, startCrashDatabase } from "./crash-database.ts";

/** A copy of all services. */
export type Side = "a" | "b";

/** The services of a side: `speech` of side a is the process `speech a`. */
const services = ["account", "usage", "speech", "image", "gateway"] as const satisfies readonly ProcessName[];

/** An account with more credit than any test spends. */
export interface CrashAccount {
  readonly accountId: string;
  /** An inference key. */
  readonly key: string;
}

/** What a stack is made of. */
export interface CrashStackOptions {
  readonly sides: readonly Side[];
  /** Several of them spread over the partitions of the topic. */
  readonly accounts: number;
  readonly upstream?: OpenAiUpstreamOptions;
  /** Puts a proxy between speech and image of each side and their account. */
  readonly accountProxies?: boolean;
  /** Added to the environment of every process. */
  readonly env?: Readonly<Record<string, string>>;
}

/** See the head of the file. */
export interface CrashStack {
  readonly sides: readonly Side[];
  /** Their absences are also the database's. */
  readonly processes: StackProcesses;
  readonly database: CrashDatabase;
  readonly broker: KafkaBroker;
  readonly upstream: OpenAiUpstream;
  readonly accounts: readonly CrashAccount[];
  /** Between speech and image of a side and their account. Throws without `accountProxies`. */
  accountProxy(side: Side): TcpProxy;
  /** Where a side's REST interface is; ends in `/api/v1`. */
  restUrl(side: Side): string;
  /** `npm run topics`; Kafka must be there. */
  makeTopics(): Promise<void>;
  /** `npm run reconcile`, asking a side: what it printed, and whether all agreed. */
  reconcile(side: Side): Promise<{ readonly agrees: boolean; readonly lines: readonly string[] }>;
  close(): Promise<void>;
}

/**
 * Times of the stack, milliseconds: short, so that what is lost is found soon. A request may take long, as the machine
 * may have other work: one that is not served in time is lost without any crash.
 */
export const crashTimes = {
  requestMs: 20_000,
  holdGraceMs: 2000,
  unseenGraceMs: 1000,
  idleMs: 2000,
} as const;

/** A model that fails over: its first endpoint is the vendor's model `tts-1-hd`, the second `tts-1`. */
export const fallbackModel = "openai/tts-1-hd";

const secondEndpoint = `
  - id: 7c1f2b04-98f5-4c0e-9a67-0c2b7b6f4d51
    model: openai/tts-1-hd
    upstream_model: tts-1
    speech: *tts-1
    prices:
      - { billable: input_character, usd_per_million: "30" }
`;
const creditNanoUsd = 1_000_000n * 1_000_000_000n;

/** Starts everything but Kafka, which was started to learn its address and is away; so are its topics. */
export async function startCrashStack(options: CrashStackOptions): Promise<CrashStack> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  const owned = async <T>(started: Promise<T>, end: (value: T) => Promise<unknown>) => {
    const value = await started;
    closers.push(() => end(value));
    return value;
  };
  try {
    const directory = await owned(mkdtemp(join(tmpdir(), "crash-stack-")), (path) =>
      rm(path, { recursive: true }),
    );
    const processes = new StackProcesses();
    const upstream = await owned(startOpenAiUpstream(options.upstream), (server) => server.close());
    const broker = await owned(startKafkaBroker(), (server) => server.stop());
    await broker.kill();
    const database = await owned(startCrashDatabase(processes.absences), (server) => server.close());
    const ground = await prepareGround(database.url, directory);
    const env = await commonEnvironment(options, { directory, broker, upstream });
    closers.push(() => processes.killAll());
    const urls = new Map<Side, SideUrls>();
    for (const side of options.sides) {
      const proxy = options.accountProxies
        ? await owned(startTcpProxy(), (server) => server.close())
        : undefined;
      urls.set(side, await startSide(processes, { services, ground, env, suffix: ` ${side}` }, proxy));
    }
    const { keyFiles } = ground;
    return await toStack(options, { urls, close, keyFiles, processes, database, broker, upstream });
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

interface Parts extends Pick<CrashStack, "processes" | "database" | "broker" | "upstream" | "close"> {
  readonly urls: ReadonlyMap<Side, SideUrls>;
  readonly keyFiles: KeyFiles;
}

async function toStack({ sides, accounts }: CrashStackOptions, parts: Parts): Promise<CrashStack> {
  const { urls, keyFiles, ...rest } = parts;
  const urlsOf = (side: Side) => {
    const found = urls.get(side);
    if (found === undefined) throw new Error(`there is no side ${side}`);
    return found;
  };
  const ADMIN_KEY_FILE = keyFiles.keyFile("operator");
  const operatorEnvironment = (side: Side) => {
    const { account: ACCOUNT_URL, usage: USAGE_URL } = urlsOf(side);
    return { ACCOUNT_URL, USAGE_URL, ADMIN_KEY_FILE };
  };
  return {
    ...rest,
    sides,
    accounts: await makeAccounts(accounts, operatorEnvironment(sides[0] ?? "a")),
    accountProxy(side) {
      const { accountProxy } = urlsOf(side);
      if (accountProxy === undefined) throw new Error("the stack has no proxies");
      return accountProxy;
    },
    restUrl: (side) => `${urlsOf(side).gateway}/api/v1`,
    async makeTopics() {
      const env = { KAFKA_BROKERS: rest.broker.brokers.join(","), KAFKA_PARTITIONS: "6" };
      await runCommand("commands/topics.ts", env);
    },
    async reconcile(side) {
      const args = ["--wait", "60"];
      const child = startChild("commands/reconcile.ts", { env: operatorEnvironment(side), args });
      return { agrees: (await child.exited) === 0, lines: child.lines };
    },
  };
}

interface Surroundings extends Pick<CrashStack, "broker" | "upstream"> {
  readonly directory: string;
}

async function commonEnvironment(
  { env }: CrashStackOptions,
  { directory, broker, upstream }: Surroundings,
): Promise<Record<string, string>> {
  const catalogDirectory = join(directory, "catalog");
  await mkdir(catalogDirectory);
  const builtIn = await readFile(join(builtInCatalogDirectory, "openai.yaml"), "utf8");
  await writeFile(join(catalogDirectory, "openai.yaml"), builtIn.trimEnd() + secondEndpoint);
  return {
    DRAIN_DELAY_MS: "0",
    KAFKA_BROKERS: broker.brokers.join(","),
    RATE_LIMIT_PER_MINUTE: "1000000",
    MAX_INFLIGHT_PER_KEY: "100000",
    SPEECH_TIMEOUT_MS: String(crashTimes.requestMs),
    IMAGE_TIMEOUT_MS: String(crashTimes.requestMs),
    SPEECH_IDLE_TIMEOUT_MS: String(crashTimes.idleMs),
    HOLD_GRACE_MS: String(crashTimes.holdGraceMs),
    UNSEEN_GRACE_MS: String(crashTimes.unseenGraceMs),
    // Longer than any request: the end of an answer always waits for its event to be safe.
    SETTLE_WAIT_MS: "60000",
    CATALOG_DIR: catalogDirectory,
    OPENAI_API_KEY: "test-key",
    OPENAI_BASE_URL: upstream.baseUrl,
    ...env,
  };
}

interface SideUrls extends Readonly<Record<(typeof services)[number], string>> {
  readonly accountProxy: TcpProxy | undefined;
}

/** With a proxy, that is what speech and image take for account. */
async function startSide(
  processes: StackProcesses,
  options: ServicesOptions<(typeof services)[number]>,
  accountProxy: SideUrls["accountProxy"],
): Promise<SideUrls> {
  const called = accountProxy === undefined ? {} : { ACCOUNT_URL: `http://127.0.0.1:${accountProxy.port}` };
  const urls = await processes.start({ ...options, envOf: { speech: called, image: called } });
  accountProxy?.connectTo(Number(new URL(urls.account).port));
  return { ...urls, accountProxy };
}

async function makeAccounts(count: number, env: Record<string, string>): Promise<readonly CrashAccount[]> {
  const { rpc } = await connectAdmin("tester", env);
  const accounts: CrashAccount[] = [];
  for (let index = 0; index < count; index += 1) {
    const { account } = await rpc.createAccount({ name: `Account ${index}`, kind: AccountKind.PERSONAL });
    const accountId = account?.id ?? "";
    await rpc.grantCredit({ accountId, amountNanoUsd: creditNanoUsd, grantId: `grant-${index}` });
    const { secret: key } = await rpc.createAccountKey({ accountId, key: { name: "key" } });
    accounts.push({ accountId, key });
  }
  return accounts;
}
