import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { type ChildOptions, startChild } from "../support/child.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { standaloneEnv } from "../support/standalone.ts";

const secret = "hunter2";
const nobody = { uid: 65534, gid: 65534 };
const isRoot = process.getuid?.() === 0;

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
  const told = child.lines.filter((line) => !line.startsWith('{"level":"info"'));
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

  test.for(["PORT", "RPC_PORT"])("%s in use", async (name) => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const { port } = holder.address() as AddressInfo;
    const env = { DATABASE_URL: database.url, [name]: String(port) };
    expect(await refusal(env)).toBe(`error: port ${port} on 127.0.0.1 is in use; set another one`);
    holder.close();
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
