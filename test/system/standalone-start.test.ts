import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, type TestContext, test } from "vitest";
import { freePort } from "../../commands/stack/free-ports.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres/database.ts";
import { type ChildOptions, startChild } from "../support/processes/child.ts";
import { speak, standaloneEnv, startStandalone } from "../support/processes/standalone.ts";

const secret = "hunter2";
const nobody = { uid: 65534, gid: 65534 };
const isRoot = process.getuid?.() === 0;

const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
);

let folder: string;
let database: TestDatabase;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "standalone-start-"));
  await chmod(folder, 0o755);
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

/** The one line that a process leaves which does not start. */
async function refusal(env: Record<string, string>, options: ChildOptions = {}): Promise<string> {
  const dataDir = join(folder, randomUUID());
  const child = startChild("standalone/main.ts", { env: standaloneEnv(dataDir, env), ...options });
  const code = await child.exited;
  const told = child.lines.filter((line) => !/^\{"level":"(info|warn)"/.test(line));
  expect({ code, told }).toEqual({ code: 1, told: [expect.stringMatching(/^error: /)] });
  expect(told[0]).not.toContain(secret);
  return told[0] ?? "";
}

describe("a start with variables that can't be used", () => {
  test("names them all in one line, before anything is made", async () => {
    const line = await refusal({
      PORT: "many",
      RPC_PORT: "70000",
      SPEECH_TIMEOUT_MS: "soon",
      MAX_BODY_MIB: "0",
      LOG_LEVEL: "loud",
      PUBLIC_URL: "ftp://media.example.test",
      DATABASE_URL: `mysql://user:${secret}@localhost/media`,
    });
    for (const message of [
      "PORT must be a whole number from 0 to 65535",
      "RPC_PORT must be a whole number from 0 to 65535",
      "SPEECH_TIMEOUT_MS must be a whole number",
      "MAX_BODY_MIB must be a whole number",
      "LOG_LEVEL must be one of",
      "PUBLIC_URL must be an http(s) URL",
      "DATABASE_URL must be a postgres:// URL",
    ]) {
      expect(line).toContain(message);
    }
    expect(await readdir(folder)).toEqual([]);
  });

  test("names a file that can't be read", async () => {
    const line = await refusal({ TLS_CERT_FILE: "nowhere.pem", TLS_KEY_FILE: "nowhere.pem" });
    expect(line).toBe("error: TLS_CERT_FILE can't be read: ENOENT");
    expect(await readdir(folder)).toEqual([]);
  });
});

describe.concurrent("a start that can't be completed says why:", () => {
  const key = generateApiKey();
  test.for<[string, Record<string, string>, RegExp]>([
    ["a key that is none", { BOOTSTRAP_INFERENCE_KEY: secret }, /BOOTSTRAP_INFERENCE_KEY must be/],
    [
      "one key for both kinds",
      { BOOTSTRAP_INFERENCE_KEY: key, BOOTSTRAP_MANAGEMENT_KEY: key },
      /BOOTSTRAP_INFERENCE_KEY and BOOTSTRAP_MANAGEMENT_KEY must differ/,
    ],
    ["no catalogue", { CATALOG_DIR: "nowhere" }, /nowhere/],
    ["a provider's address", { OPENAI_API_KEY: "k", OPENAI_BASE_URL: "nowhere" }, /OPENAI_BASE_URL/],
    ["no such interface", { HOST: "192.0.2.1" }, /192\.0\.2\.1 is no address of this machine/],
    [
      "no database",
      { DATABASE_URL: `postgres://user:${secret}@127.0.0.1:1/media` },
      /^error: the database can't be used \(.*ECONNREFUSED.*\); see DATABASE_URL$/,
    ],
  ])("%s", async ([, env, message]) => {
    expect(await refusal({ DATABASE_URL: database.url, ...env })).toMatch(message);
  });

  test.for(["PORT", "RPC_PORT"])("%s in use, before a database is made", async (name) => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;
    const DATA_DIR = join(folder, `unmade-${name}`);
    const env = { DATA_DIR, [name]: String(port) };
    expect(await refusal(env)).toBe(`error: ${name} ${port} on localhost is in use; set another one`);
    expect(existsSync(DATA_DIR)).toBe(false);
    holder.close();
  });

  test("one port for two", async () => {
    const port = String(await freePort());
    expect(await refusal({ PORT: port, RPC_PORT: port })).toBe(
      `error: RPC_PORT ${port} on localhost is in use; set another one`,
    );
  });

  test("a disk without room, at the first start and at a later one", async (context) => {
    const disk = await smallDisk(context, 16);
    const DATA_DIR = join(disk.path, "data");
    const line = `error: no room is left on the disk of DATA_DIR ${DATA_DIR}; make some, or set another directory`;
    expect(await refusal({ DATA_DIR })).toBe(line);
    disk.resize(80);
    const first = await startStandalone(DATA_DIR);
    expect(await first.child.stop()).toBe(0);
    disk.fill();
    expect(await refusal({ DATA_DIR })).toBe(line);
  });

  test("a data directory that is a file", async () => {
    const file = join(folder, "file");
    await writeFile(file, "");
    expect(await refusal({ DATA_DIR: file })).toMatch(/^error: DATA_DIR .*file is not writable/);
  });

  test("a data directory that may not be written", async (context) => {
    context.skip(!isRoot, "only root can start a process as another user");
    const script = join(import.meta.dirname, "../../standalone/main.ts");
    const isReadable = spawnSync(process.execPath, ["--check", script], { ...nobody, cwd: "/" }).status === 0;
    context.skip(!isReadable, "this checkout is closed to the user nobody");
    const dataDir = join(folder, "closed");
    expect(await refusal({ DATA_DIR: dataDir }, nobody)).toBe(
      `error: DATA_DIR ${dataDir} is not writable (EACCES); set another one`,
    );
  });
});

/** A disk of so many MiB of its own. */
async function smallDisk({ skip }: TestContext, mib: number) {
  const path = await mkdtemp(join(tmpdir(), "small-disk-"));
  const mount = (...words: string[]) => spawnSync("mount", [...words, path]).status === 0;
  onTestFinished(async () => {
    // Lazily: after a time-out something may still be at work on it.
    spawnSync("umount", ["--lazy", path]);
    await rm(path, { recursive: true });
  });
  skip(!isRoot || !mount("-t", "tmpfs", "-o", `size=${mib}m,mode=755`, "tmpfs"), "may not mount");
  let sizeMib = mib;
  return {
    path,
    resize(to: number) {
      sizeMib = to;
      expect(mount("-o", `remount,size=${to}m`)).toBe(true);
    },
    /** Takes all that is left, and never more than the disk has: a test that timed out has lost it and goes on. */
    fill: () => spawnSync("dd", ["if=/dev/zero", `of=${join(path, "fill")}`, "bs=1M", `count=${sizeMib}`]),
  };
}

describe("a first start", () => {
  test("refuses its own key never, from the first moment that its ports accept", async () => {
    const [inferenceKey, managementKey] = [generateApiKey(), generateApiKey()];
    const [port, rpcPort] = [await freePort(), await freePort()];
    const env = {
      PORT: String(port),
      RPC_PORT: String(rpcPort),
      DATABASE_URL: database.url,
      BOOTSTRAP_INFERENCE_KEY: inferenceKey,
      BOOTSTRAP_MANAGEMENT_KEY: managementKey,
    };
    const child = startChild("standalone/main.ts", { env: standaloneEnv(join(folder, "first"), env) });
    onTestFinished(async () => void (await child.stop()));
    const statuses: number[] = [];
    const ask = async (url: string, init: RequestInit) => {
      const headers = { authorization: `Bearer ${managementKey}`, "content-type": "application/json" };
      const response = await fetch(url, { ...init, headers }).catch(() => undefined);
      if (response === undefined) return;
      statuses.push(response.status);
      await response.arrayBuffer();
    };
    const rpc = `http://localhost:${rpcPort}/media.account.v1.KeyService/ListKeys`;
    const hammer = async (round: () => Promise<void>) => {
      while (statuses.filter((status) => status === 200).length < 40) await round();
    };
    await Promise.all([
      hammer(() => ask(`http://localhost:${port}/api/v1/keys`, {})),
      hammer(() => ask(rpc, { method: "POST", body: "{}" })),
    ]);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await child.line((line) => line.includes("The first account has the keys that were given."));
    for (const key of [inferenceKey, managementKey]) expect(child.lines.join("\n")).not.toContain(key);
  });

  test.for(["::1", "localhost"])("on %s says an address that works", async (HOST, { skip }) => {
    skip(!hasIpv6, "no IPv6 here");
    const own = await createTestDatabase();
    onTestFinished(() => own.drop());
    const env = { HOST, DATABASE_URL: own.url };
    const standalone = await startStandalone(join(folder, `host-${HOST.length}`), env);
    onTestFinished(async () => void (await standalone.child.stop()));
    const line = await standalone.child.line((text) => text.startsWith("Media Gateway serves "));
    const baseUrl = /serves (http:\S+)\/api\/v1 /.exec(line)?.[1] ?? "";
    expect(baseUrl).toBe(`http://${HOST === "::1" ? "[::1]" : HOST}:${standalone.restPort}`);
    const key = standalone.keys?.inferenceKey ?? "";
    const response = await speak({ baseUrl }, key, { model: "local/flite", input: "Hello." });
    expect(response.status).toBe(200);
    await response.arrayBuffer();
  });
});
