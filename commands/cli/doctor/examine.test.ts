import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ensureKeyFiles, type KeyFiles, keyFilesIn } from "../../../lib/identity/key-files.ts";
import { silentLog } from "../../../lib/runtime/log.ts";
import { migrateSchemas } from "../../../standalone/schemas.ts";
import { createTestDatabase, type TestDatabase } from "../../../test/support/postgres/database.ts";
import { commandLine, HeardTerminal } from "../../../test/support/processes/command-line.ts";
import { requireRedis, startRedis } from "../../../test/support/processes/redis-server.ts";
import {
  startTestAccountServer,
  type TestAccountServer,
} from "../../../test/support/services/account-server.ts";
import { Cli } from "../connect.ts";
import { diskFinding } from "./disk.ts";
import { examine, surroundingsOf } from "./examine.ts";
import { clockFinding } from "./stores.ts";

const goodMasterKey = `k1:${Buffer.from(Array.from({ length: 32 }, (_, at) => at * 7)).toString("base64")}`;
let account: TestAccountServer;
let empty: TestDatabase;
let whole: TestDatabase;
let dataDir: string;

beforeAll(async () => {
  account = await startTestAccountServer();
  empty = await createTestDatabase();
  whole = await createTestDatabase();
  await migrateSchemas(whole.url, silentLog);
  dataDir = await mkdtemp(join(tmpdir(), "doctor-"));
  await ensureKeyFiles(join(dataDir, "keys"));
});

afterAll(async () => {
  await account.close();
  await Promise.all([empty.drop(), whole.drop()]);
  await rm(dataDir, { recursive: true });
});

/** What is found in an environment, by what was looked at: `health: found`. */
async function found(env: Record<string, string>): Promise<Readonly<Record<string, string>>> {
  const findings = await examine(surroundingsOf(env), new Cli("ada", { env, terminal: new HeardTerminal() }));
  for (const { health, remedy } of findings) expect(health === "ok" || remedy !== undefined).toBe(true);
  return Object.fromEntries(findings.map(({ what, health, found }) => [what, `${health}: ${found}`]));
}

/** Services of their own, as far as they run here. */
const separate = (): Record<string, string> => ({
  ACCOUNT_URL: account.url,
  USAGE_URL: "http://127.0.0.1:2",
  ADMIN_KEY_FILE: account.keyFiles.keyFile("operator"),
  SERVICE_JWKS_FILE: account.keyFiles.jwksFile,
  DATABASE_URL: whole.url,
  MASTER_KEYS: goodMasterKey,
  KAFKA_BROKERS: "127.0.0.1:1",
  REDIS_URL: "redis://:hunter2@127.0.0.1:1",
});

test("of services of their own it says which are well and which do not answer", async () => {
  expect(await found(separate())).toEqual({
    PostgreSQL: expect.stringMatching(/^ok: version \d+/),
    "migrations of account": "ok: all there",
    "migrations of usage": "ok: all there",
    "migrations of destination": "ok: all there",
    clocks: expect.stringMatching(/^ok: PostgreSQL's is \d+ ms (ahead of|behind) this machine's$/),
    Kafka: expect.stringMatching(/^wrong: it can't be used/),
    Redis: expect.stringMatching(/^wrong: it can't be used/),
    "service account": `ok: ready at ${account.url}`,
    "service usage": "wrong: http://127.0.0.1:2 does not answer (ECONNREFUSED)",
    "service speech": "not checked: SPEECH_URL is not set",
    "service image": "not checked: IMAGE_URL is not set",
    "service destination": "not checked: DESTINATION_URL is not set",
    gateway: "not checked: PUBLIC_URL is not set",
    "the operator's key": expect.stringMatching(/^ok: /),
    "a call with the operator's key": "ok: the account service takes it",
    "the processes' public keys": "ok: 7 keys, of every process",
    "the master keys": "ok: 1, the first is k1",
  });
});

test("as a process it exits 1 for what is wrong, in a table without a secret", async () => {
  const { code, out, error } = await commandLine(["doctor"], { env: separate() });
  expect(code).toBe(1);
  expect(out).toMatch(/^Kafka +wrong +it can't be used/m);
  expect(error).toMatch(/^\d of 17 are wrong\n$/);
  expect(out + error).not.toMatch(/hunter2|nTHMCQ|postgres:\/\//);
});

test("migrations that are missing are named", async () => {
  const findings = await found({ ...separate(), DATABASE_URL: empty.url });
  expect(findings["migrations of usage"]).toMatch(/^wrong: missing: 0001-usage, /);
});

test.for<[string, string, string, RegExp]>([
  [
    "DATABASE_URL",
    "postgres://a:b@127.0.0.1:1/none",
    "PostgreSQL",
    /^wrong: it can't be used \(ECONNREFUSED\)$/,
  ],
  ["DATABASE_URL", "nonsense", "PostgreSQL", /^wrong: configuration: DATABASE_URL must be/],
  ["KAFKA_BROKERS", "nonsense", "Kafka", /^wrong: configuration: KAFKA_BROKERS must be/],
  ["ADMIN_KEY_FILE", "absent.jwk", "the operator's key", /^wrong: the key file absent.jwk can't be read/],
  ["ADMIN_KEY_FILE", "absent.jwk", "a call with the operator's key", /^wrong: the key file absent.jwk/],
  ["SERVICE_JWKS_FILE", "absent.json", "the processes' public keys", /^wrong: absent.json is not there$/],
  [
    "SERVICE_JWKS_FILE",
    "package.json",
    "the processes' public keys",
    /^wrong: package.json has no key of gateway, speech/,
  ],
  ["MASTER_KEYS", "k1", "the master keys", /^wrong: MASTER_KEYS must be id:key/],
  [
    "MASTER_KEYS",
    `k1:${Buffer.alloc(32, 7).toString("base64")}`,
    "the master keys",
    /^wrong: k1: not random/,
  ],
  [
    "BOOTSTRAP_MANAGEMENT_KEY",
    `sk-${"0".repeat(40)}`,
    "BOOTSTRAP_MANAGEMENT_KEY",
    /^wrong: it can be guessed/,
  ],
  ["PUBLIC_URL", "http://127.0.0.1:2", "gateway", /^wrong: http:\/\/127.0.0.1:2 does not answer/],
])("%s as %s", async ([variable, value, what, finding]) => {
  expect((await found({ ...separate(), [variable]: value }))[what]).toMatch(finding);
});

test("a key of another system is not taken, and one that others may read is worth a look", async () => {
  const other: KeyFiles = keyFilesIn(join(dataDir, "keys"));
  const env = { ...separate(), ADMIN_KEY_FILE: other.keyFile("operator") };
  expect((await found(env))["a call with the operator's key"]).toMatch(
    /^wrong: .*does not accept this admin key/,
  );
  await chmod(other.keyFile("operator"), 0o644);
  expect((await found(env))["the operator's key"]).toMatch(/^look: others may read/);
});

test("standalone is looked at in its data directory", async () => {
  const env = { DATA_DIR: dataDir, RPC_PORT: "1", PORT: "1" };
  const findings = await found(env);
  expect(findings).toMatchObject({
    PostgreSQL: expect.stringMatching(/^ok: standalone runs its own/),
    Kafka: expect.stringMatching(/^ok: not used/),
    Redis: expect.stringMatching(/^ok: not used/),
    "standalone's services": expect.stringMatching(/^wrong: .*does not answer/),
    gateway: expect.stringMatching(/^wrong: .*does not answer/),
    "the master keys": expect.stringMatching(/^wrong: .*is not there/),
    "disk space": expect.stringMatching(/GiB free/),
  });
  await writeFile(join(dataDir, "keys", "master-keys"), `${goodMasterKey}\n`);
  expect((await found(env))["the master keys"]).toBe("ok: 1, the first is k1");
  expect((await found({ ...env, DATA_DIR: join(dataDir, "absent") }))["disk space"]).toMatch(/^wrong: /);
});

test("a Redis that answers is well", async (context) => {
  requireRedis(context);
  await using redis = await startRedis();
  expect((await found({ ...separate(), REDIS_URL: redis.url })).Redis).toBe("ok: it answers");
});

test.for([
  [0, 0, "ok"],
  [-999, 5, "ok"],
  [4000, 3500, "ok"],
  [4000, 5, "look"],
  [-11_000, 5, "wrong"],
] as const)("a clock %i ms off, measured to %i ms, is %s", ([ahead, error, health]) => {
  expect(clockFinding(ahead, error).health).toBe(health);
});

test.for([
  [2 ** 31, "ok"],
  [2 ** 29, "look"],
  [2 ** 20, "wrong"],
] as const)("%i bytes free are %s", ([bytes, health]) => {
  expect(diskFinding("data", bytes).health).toBe(health);
});
