import { createClient } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { isApiKey } from "../../lib/identity/api-key.ts";
import { postmasterOf, postmastersOn } from "../support/postgres/postmaster.ts";
import { removeDataDirectory, temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { type Child, startChild } from "../support/processes/child.ts";
import {
  bytesOf,
  openAiEnv,
  type Standalone,
  type StandaloneKeys,
  speak,
  standaloneEnv,
  startStandalone,
} from "../support/processes/standalone.ts";
import { errorOf } from "../support/services/gateway-server.ts";
import { stockTransport } from "../support/services/speech-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

const hello = { model: "local/flite", input: "Hello." };
const throughUpstream = { model: "openai/tts-1", voice: "alloy", input: "Hello." };
const hasProc = process.platform === "linux";

let upstream: OpenAiUpstream;
let dataDir: string;
/** What runs on `dataDir` now, and the keys that its first start showed. */
let stack: Standalone;
let keys: StandaloneKeys;

beforeAll(async () => {
  upstream = await startOpenAiUpstream();
  dataDir = await temporaryDirectory();
  stack = await startStandalone(dataDir, openAiEnv(upstream));
  keys = stack.keys as StandaloneKeys;
});

afterAll(async () => {
  await stack.child.stop();
  await removeDataDirectory(dataDir);
  await upstream.close();
});

async function restart(env: Record<string, string> = {}): Promise<void> {
  stack = await startStandalone(dataDir, { ...openAiEnv(upstream), ...env });
}

async function expectToSpeak(key: string, on: Standalone = stack): Promise<void> {
  const response = await speak(on, key, hello);
  expect(response.status).toBe(200);
  expect((await bytesOf(response)).length).toBeGreaterThan(1000);
}

async function expectNoPostgres(directory = dataDir): Promise<void> {
  expect(await postmasterOf(directory)).toBeUndefined();
  if (hasProc) expect(await postmastersOn(directory)).toEqual([]);
}

/** The one line that a process leaves which does not start. */
async function refusal(env: Record<string, string>): Promise<string> {
  const child = startChild("standalone/main.ts", { env });
  expect(await child.exited).toBe(1);
  return errorLine(child);
}

function errorLine({ lines }: Child): string {
  const told = lines.filter(
    (line) => !line.startsWith('{"level":"info"') && !line.startsWith('{"level":"warn"'),
  );
  expect(told).toEqual([expect.stringMatching(/^error: /)]);
  return told[0] ?? "";
}

describe("keys", () => {
  test("are shown on the first start and work", async () => {
    expect([keys.inferenceKey, keys.managementKey].map(isApiKey)).toEqual([true, true]);
    await expectToSpeak(keys.inferenceKey);
    expect(await errorOf(await speak(stack, keys.managementKey, hello))).toEqual({
      status: 401,
      reason: "inference_key_required",
    });
  });

  test("outlive a restart, and are not shown again", async () => {
    expect(await stack.child.stop()).toBe(0);
    await expectNoPostgres();
    await restart();
    expect(stack.keys).toBeUndefined();
    expect(stack.child.lines.join("\n")).not.toContain("sk-");
    await expectToSpeak(keys.inferenceKey);
  });

  test("outlive a killed process, whose database has one server afterwards", async () => {
    const orphan = await postmasterOf(dataDir);
    await stack.child.kill();
    if (hasProc) expect(await postmastersOn(dataDir)).toEqual([orphan]);
    await restart();
    expect(stack.child.lines.join("\n")).not.toContain("sk-");
    const server = await postmasterOf(dataDir);
    expect(server).not.toBe(orphan);
    if (hasProc) expect(await postmastersOn(dataDir)).toEqual([server]);
    await expectToSpeak(keys.inferenceKey);
  });
});

/** What a key is answered that is refused within 5 s, and a little for asking. */
function answerOnceRefused(key: string) {
  return waitUntil(
    async () => {
      const response = await speak(stack, key, { ...hello, model: "no/such" });
      const answer = await errorOf(response);
      return answer.status === 401 && answer;
    },
    { timeoutMs: 6000, intervalMs: 50 },
  );
}

describe.concurrent("while it runs,", () => {
  test("keys are made by the operator while the gateway runs", async () => {
    const admin = (args: string, env: Record<string, string>) =>
      startChild("commands/admin.ts", { args: args.split(" "), env: { DATA_DIR: dataDir, ...env } });
    const first = admin("key create --scopes speech --name spare", { RPC_PORT: String(stack.rpcPort) });
    expect(await first.exited).toBe(0);
    const key = first.lines.find(isApiKey) ?? "";
    await expectToSpeak(key);
    const second = admin("key create --scopes images", { ACCOUNT_URL: stack.rpcUrl });
    expect(await second.exited).toBe(0);
    const imagesKey = second.lines.find(isApiKey) ?? "";
    expect(await errorOf(await speak(stack, imagesKey, hello))).toEqual({
      status: 401,
      reason: "scope_missing",
    });
  });

  test("keys that are disabled or deleted are refused within 5 s", async () => {
    const service = createClient(KeyService, stockTransport("Connect over HTTP/1.1", stack.rpcUrl));
    const headers = { authorization: `Bearer ${keys.managementKey}` };
    const made = async () => {
      const { secret, key } = await service.createKey({ name: "short-lived" }, { headers });
      await expectToSpeak(secret);
      return { secret, hash: key?.hash ?? "" };
    };
    const [disabled, deleted] = [await made(), await made()];
    await service.updateKey({ hash: disabled.hash, disabled: true }, { headers });
    await service.deleteKey({ hash: deleted.hash }, { headers });
    const answers = await Promise.all([disabled, deleted].map(({ secret }) => answerOnceRefused(secret)));
    expect(answers).toEqual([
      { status: 401, reason: "key_disabled" },
      { status: 401, reason: "key_unknown" },
    ]);
    await expectToSpeak(keys.inferenceKey);
  });

  test("a second one on the same data is refused and disturbs nothing", async () => {
    const server = await postmasterOf(dataDir);
    expect(await refusal(standaloneEnv(dataDir))).toBe(
      `error: DATA_DIR ${dataDir} is in use by process ${stack.child.pid}`,
    );
    expect(await postmasterOf(dataDir)).toBe(server);
    await expectToSpeak(keys.inferenceKey);
  });

  test("a second one that finds its port taken leaves no database behind, and still shows its keys later", async () => {
    const other = await temporaryDirectory();
    try {
      const taken = { ...standaloneEnv(other), PORT: String(stack.restPort) };
      expect(await refusal(taken)).toBe(
        `error: PORT ${stack.restPort} on localhost is in use; set another one`,
      );
      await expectNoPostgres(other);
      const second = await startStandalone(other);
      try {
        const { inferenceKey } = second.keys as StandaloneKeys;
        await expectToSpeak(inferenceKey, second);
        await expectToSpeak(keys.inferenceKey);
        expect((await speak(second, keys.inferenceKey, hello)).status).toBe(401);
        expect((await speak(stack, inferenceKey, hello)).status).toBe(401);
      } finally {
        expect(await second.child.stop()).toBe(0);
      }
      await expectNoPostgres(other);
      await expectToSpeak(keys.inferenceKey);
    } finally {
      await removeDataDirectory(other);
    }
  });
});

describe("a stop", () => {
  afterEach(() => restart());

  test("lets a stream that runs come to its end first", async () => {
    const rest = Promise.withResolvers<void>();
    upstream.next({
      kind: "audio",
      totalBytes: 40_000,
      beforeChunk: (index) => (index === 0 ? undefined : rest.promise),
    });
    const response = await speak(stack, keys.inferenceKey, throughUpstream);
    const ended = stack.child.stop();
    await waitUntil(() =>
      fetch(`${stack.baseUrl}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    rest.resolve();
    expect(await bytesOf(response)).toHaveLength(40_000);
    expect(await ended).toBe(0);
    await expectNoPostgres();
  });

  test("cuts a stream that does not end in time", async () => {
    await stack.child.stop();
    await restart({ DRAIN_TIMEOUT_MS: "200" });
    upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    const request = upstream.received(upstream.requests.length + 1);
    const response = await speak(stack, keys.inferenceKey, throughUpstream);
    const ended = stack.child.stop();
    await expect(response.arrayBuffer()).rejects.toThrow("terminated");
    expect(await (await request).ended).toBe("closed_by_client");
    expect(await ended).toBe(0);
    await expectNoPostgres();
  });

  test("is one of the whole process when the database ends", async () => {
    process.kill((await postmasterOf(dataDir)) ?? 0, "SIGKILL");
    expect(await stack.child.exited).toBe(1);
    const log = stack.child.lines.join("\n");
    expect(log).toContain("the embedded PostgreSQL ended");
    expect(log).not.toContain("secretKey");
  });

  test("in a hurry takes the database along", async () => {
    upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    const response = await speak(stack, keys.inferenceKey, throughUpstream);
    const broken = response.arrayBuffer().catch((thrown: Error) => thrown.message);
    process.kill(stack.child.pid, "SIGTERM");
    await waitUntil(() =>
      fetch(`${stack.baseUrl}/healthz`).then(
        () => false,
        () => true,
      ),
    );
    expect(await stack.child.stop()).toBe(130);
    expect(await broken).toBe("terminated");
    await waitUntil(async () => (await postmasterOf(dataDir)) === undefined);
  });
});
