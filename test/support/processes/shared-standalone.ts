import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { inject } from "vitest";
import { connectAdmin } from "../../../commands/cli/connect.ts";
import { startChild } from "../../../commands/stack/child.ts";
import { KeptProcesses } from "../../../commands/stack/kept-processes.ts";
import { AccountKind } from "../../../gen/media/account/v1/account_pb.ts";
import { KeyKind } from "../../../gen/media/account/v1/key_pb.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../../upstreams/openai/openai.ts";
import { createTestDatabase } from "../postgres/database.ts";
import { openAiEnv, type Standalone, type StandaloneKeys, startStandalone } from "./standalone.ts";

/** An account of a test file's own on a standalone that others use, too, before and after. */
export interface SharedStandalone extends Omit<Standalone, "keys">, StandaloneKeys {
  /** OpenAI's place is taken by this stand-in. What a test queues in it, it uses up. */
  readonly upstream: OpenAiUpstream;
}

interface Running {
  readonly standalone: Standalone;
  readonly upstream: OpenAiUpstream;
  readonly dataDir: string;
}

/** One a worker of vitest, whose files run one after another and share their modules; it ends with the worker. */
let running: Promise<Running> | undefined;

/** The largest body that it takes. */
export const maxBodyMib = 1;

const creditNanoUsd = 10_000_000_000n;

/**
 * Makes an account with 10 USD and a key of each kind on the worker's standalone, which the first call starts. For tests
 * that need no configuration of their own, stop nothing and leave no endpoint failing.
 */
export async function openSharedStandalone(): Promise<SharedStandalone> {
  running ??= start();
  const { standalone, upstream, dataDir } = await running;
  const env = { DATA_DIR: dataDir, RPC_PORT: String(standalone.rpcPort) };
  const { rpc } = await connectAdmin("tester", env);
  const { account } = await rpc.createAccount({ name: "A test's own", kind: AccountKind.PERSONAL });
  const accountId = account?.id ?? "";
  await rpc.grantCredit({ accountId, amountNanoUsd: creditNanoUsd, grantId: `grant-${accountId}` });
  const keyOf = async (kind: KeyKind) => {
    const { secret } = await rpc.createAccountKey({ accountId, key: { name: "key", kind } });
    return secret;
  };
  return {
    ...standalone,
    upstream,
    inferenceKey: await keyOf(KeyKind.INFERENCE),
    managementKey: await keyOf(KeyKind.MANAGEMENT),
  };
}

async function start(): Promise<Running> {
  const kept = new KeptProcesses();
  const upstream = await startOpenAiUpstream();
  const dataDir = await mkdtemp(join(inject("testFolder"), "standalone-"));
  const database = await createTestDatabase();
  const env = { ...openAiEnv(upstream), DATABASE_URL: database.url, MAX_BODY_MIB: `${maxBodyMib}` };
  const standalone = await startStandalone(dataDir, env, (script, options) => {
    const child = startChild(script, options);
    kept.keep(child.pid, child.exited);
    return child;
  });
  return { standalone, upstream, dataDir };
}
