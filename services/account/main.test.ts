import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CreditService } from "../../gen/media/account/v1/credit_service_pb.ts";
import { KeyService } from "../../gen/media/account/v1/key_service_pb.ts";
import { generateApiKey } from "../../lib/identity/api-key.ts";
import { ensureKeyFiles } from "../../lib/identity/key-files.ts";
import { createTestDatabase, type TestDatabase } from "../../test/support/postgres/database.ts";
import { inheritedEnvironment } from "../../test/support/processes/child.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { accountMigrations } from "./migrations.ts";

const main = new URL("main.ts", import.meta.url).pathname;
const migrate = new URL("../../commands/migrate.ts", import.meta.url).pathname;
const managementKey = generateApiKey();
const migrations = Object.keys(accountMigrations.migrations).join(", ");
let folder: string;
let database: TestDatabase;
let env: NodeJS.ProcessEnv;
let children: ChildProcess[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "account-main-"));
  const { jwksFile } = await ensureKeyFiles(folder);
  database = await createTestDatabase();
  children = [];
  env = {
    ...inheritedEnvironment(),
    PORT: "0",
    DATABASE_URL: database.url,
    KAFKA_BROKERS: "127.0.0.1:1",
    SERVICE_JWKS_FILE: jwksFile,
    MASTER_KEYS: `k:${Buffer.alloc(32, 1).toString("base64")}`,
    BOOTSTRAP_CREDIT_USD: "2.50",
    BOOTSTRAP_MANAGEMENT_KEY: managementKey,
    DRAIN_DELAY_MS: "0",
  };
});

afterEach(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.kill("SIGKILL")) await once(child, "exit");
  }
  await database.drop();
  await rm(folder, { recursive: true });
});

function run(script: string, environment: NodeJS.ProcessEnv = env) {
  const child = spawn(process.execPath, [script], { env: environment });
  children.push(child);
  return child;
}

async function runToEnd(script: string, environment: NodeJS.ProcessEnv = env) {
  const child = run(script, environment);
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
  if (child.exitCode === null) await once(child, "exit");
  return { out, error, code: child.exitCode };
}

async function start() {
  const child = run(main);
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    log += chunk;
  });
  const port = await waitUntil(() => /"port":(\d+)/.exec(log)?.[1], { timeoutMs: 60_000 });
  return { child, url: `http://127.0.0.1:${port}`, log: () => log };
}

async function readiness(url: string) {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, body: (await response.json()) as { problems?: string[] } };
}

/** What an RPC answers the key; undefined for a refusal. */
async function ask(url: string, rpc: string, key = managementKey): Promise<unknown> {
  const response = await fetch(`${url}/${rpc}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: "{}",
  });
  return response.ok ? response.json() : undefined;
}

test("waits for its migrations, makes the configured account once, and stops when told to", async () => {
  const first = await start();
  expect(await readiness(first.url)).toMatchObject({
    status: 503,
    body: { problems: [`migrations pending: ${migrations}`] },
  });
  for (const done of [`applied ${migrations}`, "up to date"]) {
    const { out, error, code } = await runToEnd(migrate);
    expect({ error, code }).toEqual({ error: "", code: 0 });
    expect(out.split("\n")).toContain(`account: ${done}`);
  }
  await waitUntil(async () => (await readiness(first.url)).status === 200);
  const second = await start();
  for (const { url } of [first, second]) {
    const keys = await ask(url, `${KeyService.typeName}/ListKeys`);
    expect(keys).toMatchObject({ totalCount: "1" });
    const credits = await ask(url, `${CreditService.typeName}/GetCredits`);
    expect(credits).toEqual({ totalCreditsNanoUsd: "2500000000" });
  }
  for (const { child, log } of [first, second]) {
    child.kill("SIGTERM");
    const [code] = await once(child, "exit");
    expect(code).toBe(0);
    expect(log()).not.toContain(managementKey.slice(3, 23));
  }
});

test("is not ready, and refuses no key, until its configured account is there", async () => {
  expect(await runToEnd(migrate)).toMatchObject({ code: 0 });
  const client = new pg.Client({ connectionString: database.url });
  client.on("error", () => undefined);
  await client.connect();
  // Whoever makes the first account takes this lock.
  await client.query("SELECT pg_advisory_lock(hashtextextended('account.bootstrap', 0))");
  const { url } = await start();
  expect(await readiness(url)).toMatchObject({
    status: 503,
    body: { problems: ["the first account is being made"] },
  });
  const asked = Array.from({ length: 3 }, () => ask(url, `${KeyService.typeName}/ListKeys`));
  const unknown = ask(url, `${KeyService.typeName}/ListKeys`, generateApiKey());
  expect(await Promise.race([...asked, unknown, readiness(url).then(() => "still waiting")])).toBe(
    "still waiting",
  );
  await client.end();
  for (const answer of await Promise.all(asked)) expect(answer).toMatchObject({ totalCount: "1" });
  expect(await unknown).toBeUndefined();
  await waitUntil(async () => (await readiness(url)).status === 200);
});

test("says in one line what keeps it from starting, without a secret", async () => {
  const malformed = await runToEnd(main, { ...env, BOOTSTRAP_MANAGEMENT_KEY: "sk-weak" });
  expect(malformed.code).toBe(1);
  expect(malformed.error).toMatch(/^error: configuration: BOOTSTRAP_MANAGEMENT_KEY must be .+\n$/);
  expect(malformed.error).not.toContain("weak");
  const unset = await runToEnd(main, { ...env, MASTER_KEYS: "" });
  expect(unset).toEqual({ out: "", error: "error: configuration: MASTER_KEYS is required\n", code: 1 });
  const short = await runToEnd(main, { ...env, MASTER_KEYS: "k:c2hvcnQ=" });
  expect(short.error).toMatch(/^error: configuration: MASTER_KEYS must be .+\n$/);
  expect(short.error).not.toContain("c2hvcnQ");
  const absent = await runToEnd(main, { ...env, SERVICE_JWKS_FILE: join(folder, "absent") });
  expect(absent).toMatchObject({
    code: 1,
    error: expect.stringMatching(/^error: .*absent can't be read.*\n$/),
  });
});

test("a migration without a database says so in one line", async () => {
  const unset = await runToEnd(migrate, { ...env, DATABASE_URL: "" });
  expect(unset).toEqual({ out: "", error: "error: configuration: DATABASE_URL is required\n", code: 2 });
  const url = new URL(database.url);
  url.pathname = "absent";
  const absent = await runToEnd(migrate, { ...env, DATABASE_URL: url.href });
  expect(absent).toMatchObject({
    out: "",
    code: 4,
    error: expect.stringMatching(/^error: PostgreSQL: .*absent.*\n$/),
  });
  url.hostname = "localhost";
  url.port = "1";
  const away = await runToEnd(migrate, { ...env, DATABASE_URL: url.href });
  expect(away).toMatchObject({ out: "", code: 5, error: expect.stringMatching(/^error: .+\n$/) });
  expect(away.error).not.toContain(url.password);
});
