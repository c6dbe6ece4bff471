import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createLog, silentLog } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import {
  homeOf,
  removeDataDirectory,
  temporaryDirectory,
} from "../test/support/postgres/temporary-directory.ts";
import {
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
import { postmasterPid } from "./postgres-orphan.ts";

// One data directory for all tests of the file; those that damage it mend it.
let dataDir: string;
const running: EmbeddedPostgres[] = [];

beforeAll(async () => {
  dataDir = await temporaryDirectory();
});

afterEach(async () => {
  await Promise.all(running.splice(0).map((postgres) => postgres.stop()));
});

afterAll(() => removeDataDirectory(dataDir));

async function start(options: Partial<EmbeddedPostgresOptions> = {}): Promise<EmbeddedPostgres> {
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog, durable: false, ...options });
  running.push(postgres);
  return postgres;
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

async function query(url: string, statement: string): Promise<Record<string, unknown>[]> {
  const client = await connect(url);
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

async function settings(url: string, ...names: string[]): Promise<Record<string, unknown>> {
  const columns = names.map((name) => `current_setting('${name}') AS ${name}`);
  return (await query(url, `SELECT ${columns.join(", ")}`))[0] ?? {};
}

test("a first start makes a database that is durable, closed to others and in UTF-8 and UTC", async () => {
  const { url } = await start({ durable: true });
  expect(await settings(url, "fsync", "synchronous_commit", "full_page_writes", "max_connections")).toEqual({
    fsync: "on",
    synchronous_commit: "on",
    full_page_writes: "on",
    max_connections: "100",
  });
  expect(
    await settings(url, "listen_addresses", "unix_socket_directories", "server_encoding", "TimeZone"),
  ).toEqual({
    listen_addresses: "127.0.0.1",
    unix_socket_directories: "",
    server_encoding: "UTF8",
    timezone: "UTC",
  });
  const [locale] = await query(
    url,
    "SELECT lower('ÄΣ') AS lower, datcollate FROM pg_database WHERE datname = 'postgres'",
  );
  expect(locale).toEqual({ lower: "äσ", datcollate: "C" });
  const rules = await query(url, "SELECT DISTINCT auth_method FROM pg_hba_file_rules");
  expect(rules).toEqual([{ auth_method: "scram-sha-256" }]);
});

test("the password is random, kept in a file of its owner's alone, and asked for", async () => {
  const { url } = await start();
  const file = join(dataDir, "postgres-password");
  expect((await readFile(file, "utf8")).trim()).toBe(new URL(url).password);
  expect(new URL(url).password).toMatch(/^[\w-]{32}$/);
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const wrong = new URL(url);
  wrong.password = "wrong";
  await expect(connect(wrong.href)).rejects.toThrow("password authentication failed");
});

test("data outlives a stop, and stopping twice is one stop", async () => {
  const first = await start();
  await query(first.url, "CREATE TABLE kept AS SELECT 42 AS answer");
  await Promise.all([first.stop(), first.stop()]);
  await expect(connect(first.url)).rejects.toThrow("ECONNREFUSED");
  const second = await start();
  expect(await query(second.url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
});

test("a second start on a directory in use is refused and disturbs nothing", async () => {
  const first = await start();
  const client = await connect(first.url);
  const refusal = `DATA_DIR ${dataDir} is in use by process ${process.pid}`;
  await expect(start()).rejects.toThrow(new StartError(refusal));
  expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  await client.end();
});

test("stop cuts off sessions and does not wait for their work", async () => {
  const postgres = await start();
  const client = await connect(postgres.url);
  const sleeping = client.query("SELECT pg_sleep(3600)").catch((error: Error) => error.message);
  await expect
    .poll(() =>
      query(
        postgres.url,
        "SELECT 1 AS one FROM pg_stat_activity WHERE query LIKE '%3600%' AND wait_event = 'PgSleep'",
      ),
    )
    .toEqual([{ one: 1 }]);
  await postgres.stop();
  expect(await sleeping).toMatch(/terminat/);
});

test("a server that can't shut down in time is made to", async () => {
  const postgres = await start({ stopTimeoutMs: 50 });
  const client = await connect(postgres.url);
  const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
  process.kill(rows[0].pid, "SIGSTOP");
  await postgres.stop();
  await expect(connect(postgres.url)).rejects.toThrow("ECONNREFUSED");
  const again = await start();
  expect(await query(again.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("the end of the server is reported, and leaves a directory that starts again", async () => {
  const postgres = await start();
  const pid = await postmasterPid(join(await homeOf(dataDir), "cluster"));
  process.kill(pid ?? 0, "SIGKILL");
  expect((await postgres.exited).message).toContain("PostgreSQL ended (SIGKILL)");
  await postgres.stop();
  const again = await start();
  expect(await query(again.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("a stop is not reported as an end", async () => {
  const postgres = await start();
  await postgres.stop();
  const told = await Promise.race([
    postgres.exited,
    new Promise((resolve) => setImmediate(resolve, "nothing")),
  ]);
  expect(told).toBe("nothing");
});

test("a start that is given up leaves nothing running and the directory free", async () => {
  const abort = new AbortController();
  const write = (line: string) => {
    if (line.includes("starting PostgreSQL")) abort.abort(new Error("given up"));
  };
  const log = createLog({ name: "test", level: "debug", destination: { write } });
  await expect(start({ signal: abort.signal, log })).rejects.toThrow("given up");
  expect(await postmasterPid(join(await homeOf(dataDir), "cluster"))).toBeUndefined();
  const again = await start();
  expect(await query(again.url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
});

test("a first start that is given up leaves an empty directory that starts", async () => {
  const empty = await temporaryDirectory();
  try {
    const signal = AbortSignal.abort(new Error("given up"));
    await expect(start({ dataDir: empty, signal })).rejects.toThrow("given up");
    expect(await readdir(await homeOf(empty))).not.toContainEqual(
      expect.stringMatching(/^(cluster|initializing)/),
    );
    await (await start({ dataDir: empty })).stop();
  } finally {
    await removeDataDirectory(empty);
  }
});

/** Runs `body` with other content in a file. */
async function withFile(path: string, content: string, body: () => Promise<void>): Promise<void> {
  const original = await readFile(path);
  await writeFile(path, content);
  try {
    await body();
  } finally {
    await writeFile(path, original);
  }
}

test("data of another major release is refused, naming both", async () => {
  await withFile(join(await homeOf(dataDir), "cluster", "PG_VERSION"), "17\n", async () => {
    await expect(start()).rejects.toThrow(
      /was made by PostgreSQL 17 and this release brings PostgreSQL 18; dump it/,
    );
  });
});

test("a lost or wrong password file is named", async () => {
  const file = join(dataDir, "postgres-password");
  await withFile(file, "something else\n", async () => {
    await expect(start()).rejects.toThrow(new StartError(`the password in ${file} is not the database's`));
    await rm(file);
    await expect(start()).rejects.toThrow(`${file} is missing`);
  });
});

test("what the server says when it does not start is shown in one line", async () => {
  const configuration = join(await homeOf(dataDir), "cluster", "postgresql.conf");
  await withFile(configuration, "no_such_setting = on\n", async () => {
    const failure = await start().catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(StartError);
    expect(failure).toHaveProperty(
      "message",
      expect.stringMatching(/^PostgreSQL did not start: .*no_such_setting.*$/),
    );
  });
});

test("the server gets none of the process's environment", async ({ skip }) => {
  skip(process.platform !== "linux", "only /proc shows the environment of another process");
  process.env.TEST_PROVIDER_KEY = "sk-secret";
  try {
    await start();
  } finally {
    delete process.env.TEST_PROVIDER_KEY;
  }
  const pid = await postmasterPid(join(await homeOf(dataDir), "cluster"));
  const environment = await readFile(`/proc/${pid}/environ`, "utf8");
  expect(environment).toContain("TZ=UTC");
  expect(environment).not.toContain("sk-secret");
});
