import { once } from "node:events";
import { readdir, rename, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFinished,
  type TestContext,
  test,
} from "vitest";
import { type Child, startChild } from "../../commands/stack/child.ts";
import { processNames } from "../../commands/stack/processes.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { removeDataDirectory, temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import { waitUntil } from "../support/wait-until.ts";

const patience = { timeoutMs: 60_000, intervalMs: 50 };
const timeout = 180_000;

/** Where Java and the broker are, if somebody has said so. */
const env = Object.fromEntries(
  ["JAVA_HOME", "KAFKA_BROKER_DIR", "XDG_CACHE_HOME"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  }),
);

let dataDir: string;

beforeAll(async () => {
  dataDir = await temporaryDirectory();
});

afterAll(() => removeDataDirectory(dataDir));

/** `npm run stack`, with a database and a broker of its own that the next one finds again. */
function startStackCommand(more: Record<string, string> = {}): Child {
  return startChild("commands/stack.ts", {
    env: { ...env, ...more },
    args: ["--free-ports", "--data-dir", dataDir],
  });
}

/** What it has printed of a service: where it is, and its processes. */
async function serviceLine(stack: Child, service: string) {
  const line = await stack.line((text) => text.startsWith(`  ${service} `));
  const [, url = "", pids = ""] = /(http:\S+)\s+processes ([\d, ]+)$/.exec(line) ?? [];
  return { url, pids: pids.split(", ").map(Number) };
}

function allPids(stack: Child): Promise<number[]> {
  return Promise.all(processNames.map(async (name) => (await serviceLine(stack, name)).pids)).then((all) =>
    all.flat(),
  );
}

/** The process that has taken the place of one that died. */
async function revivedPid(stack: Child, name: string): Promise<number> {
  const line = await stack.line((text) => text.startsWith(`${name} serves again `));
  return Number(/process (\d+)/.exec(line)?.[1]);
}

async function untilGone(pids: readonly number[]): Promise<void> {
  await waitUntil(() => pids.every((pid) => !isAlive(pid)), patience);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("npm run stack", () => {
  beforeEach((context: TestContext) => needKafka(context));

  test("serves, restarts its processes when told to, and stops them all", { timeout }, async () => {
    const stack = startStackCommand();
    const { url } = await serviceLine(stack, "gateway");
    const key = /sk-\S+/.exec(await stack.line((line) => line.startsWith("  inference ")))?.[0];
    const speak = async () => {
      const response = await fetch(`${url}/api/v1/audio/speech`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "local/flite", input: "Hello." }),
      });
      return [response.status, (await response.arrayBuffer()).byteLength > 1000];
    };
    expect(await speak()).toEqual([200, true]);
    const pids = await allPids(stack);
    expect(pids).toHaveLength(processNames.length);

    process.kill(stack.pid, "SIGUSR2");
    for (const service of processNames)
      await stack.line((line) => line === `${service} restarted (exit code 0)`);
    await untilGone(pids);
    expect(await speak()).toEqual([200, true]);

    expect(await stack.stop()).toBe(0);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });

  test("shows its keys once, and starts a process again that dies, after longer and longer pauses", {
    timeout,
  }, async () => {
    const stack = startStackCommand();
    await stack.line((line) => line === "Keys were shown on the first start.");
    const { url, pids } = await serviceLine(stack, "gateway");
    const keyFile = join(dataDir, "keys", "gateway.jwk");
    await rename(keyFile, `${keyFile}.away`);
    process.kill(pids[0] ?? 0, "SIGKILL");
    await stack.line((line) => line === "gateway ended by itself (SIGKILL); starting it again in 0.5 s");
    for (const pause of ["1 s", "2 s"]) {
      const said = await stack.line((line) => line.endsWith(`starting it again in ${pause}`));
      expect(said).toMatch(/^gateway ended \(exit code 1: error: .*gateway\.jwk.*\) before it was ready; /);
    }
    await rename(`${keyFile}.away`, keyFile);
    const pid = await revivedPid(stack, "gateway");
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const others = (await allPids(stack)).filter((other) => other !== pids[0]);
    expect(others.filter((other) => !isAlive(other))).toEqual([]);

    expect(await stack.stop()).toBe(0);
    await untilGone([...others, pid]);
  });

  test("ends with the reason when a process can't be started the first time", { timeout }, async () => {
    const stack = startStackCommand({ OPENAI_API_KEY: "key", OPENAI_BASE_URL: "nowhere" });
    expect(await stack.exited).toBe(1);
    const reason = /^error: (speech|image) ended \(exit code 1: .*OPENAI_BASE_URL.*\) before it was ready$/;
    expect(stack.lines.at(-1)).toMatch(reason);
  });

  test("leaves nothing behind when it is killed", { timeout }, async () => {
    const stack = startStackCommand();
    const pids = await allPids(stack);
    await stack.kill();
    await untilGone(pids);
  });
});

test.for([
  [["--replicas", "many"], "--replicas must be a whole number from 1 to 10"],
  [["--replicas", "0"], "--replicas must be a whole number from 1 to 10"],
  [["--port", "70000"], "--port must be a whole number from 0 to 65535"],
  [["--colour"], "--colour"],
] as const)("it refuses %j in one line", async ([args, reason]) => {
  const stack = startChild("commands/stack.ts", { args });
  expect(await stack.exited).toBe(1);
  expect(stack.lines).toEqual([expect.stringMatching(/^error: /)]);
  expect(stack.lines[0]).toContain(reason);
});

test("a port that is taken ends it before anything is started", async () => {
  const folder = await temporaryDirectory();
  const holder = createServer().listen(0, "127.0.0.1");
  onTestFinished(async () => {
    holder.close();
    await rm(folder, { recursive: true });
  });
  await once(holder, "listening");
  const { port } = holder.address() as AddressInfo;
  const args = ["--free-ports", "--port", String(port), "--data-dir", folder];
  const stack = startChild("commands/stack.ts", { args });
  expect(await stack.exited).toBe(1);
  expect(stack.lines.at(-1)).toBe(`error: port ${port} on 127.0.0.1 is in use; set another one`);
  expect(await readdir(folder)).toEqual(["logs"]);
});
