import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../lib/runtime/log.ts";
import { type OwnerProcess, spawnOwner } from "../test/support/postgres/owner-process.ts";
import {
  homeOf,
  removeDataDirectory,
  temporaryDirectory,
} from "../test/support/postgres/temporary-directory.ts";
import { startEmbeddedPostgres } from "./embedded-postgres.ts";
import { postmasterPid } from "./postgres-orphan.ts";

let dataDir: string;
const owners: OwnerProcess[] = [];

beforeEach(async () => {
  dataDir = await temporaryDirectory();
});

afterEach(async () => {
  await Promise.all(owners.splice(0).map((owner) => owner.end()));
  await removeDataDirectory(dataDir);
});

function startOwner(): OwnerProcess {
  const owner = spawnOwner({ dataDir, durable: false });
  owners.push(owner);
  return owner;
}

async function kill(owner: OwnerProcess): Promise<void> {
  owner.child.kill("SIGKILL");
  if (owner.child.exitCode === null && owner.child.signalCode === null) await once(owner.child, "exit");
}

async function clusterPid(): Promise<number> {
  return (await postmasterPid(join(await homeOf(dataDir), "cluster"))) ?? 0;
}

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/** Starts in this process, runs `body` with the URL, and stops. */
async function withDatabase(body: (url: string) => Promise<void>): Promise<void> {
  const postgres = await startEmbeddedPostgres({ dataDir, log: silentLog, durable: false });
  try {
    await body(postgres.url);
  } finally {
    await postgres.stop();
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Kills the server and, once it has been buried, its owner, so that `postmaster.pid` names nobody. */
async function leaveStalePidFile(): Promise<string> {
  const owner = startOwner();
  await query(await owner.url, "CREATE TABLE kept AS SELECT 42 AS answer");
  const pid = await clusterPid();
  process.kill(pid, "SIGKILL");
  await expect.poll(() => isAlive(pid), { timeout: 10_000 }).toBe(false);
  await kill(owner);
  return join(await homeOf(dataDir), "cluster", "postmaster.pid");
}

test("after a kill of the owner its server is stopped and everything committed is there", async () => {
  const owner = startOwner();
  await query(await owner.url, "CREATE TABLE kept AS SELECT 42 AS answer");
  const orphan = await clusterPid();
  await kill(owner);
  expect(isAlive(orphan)).toBe(true);
  await withDatabase(async (url) => {
    expect(await query(url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    await expect(owner.url.then((earlier) => query(earlier, "SELECT 1"))).rejects.toThrow();
    expect(await clusterPid()).not.toBe(orphan);
  });
});

test("an owner that exits without a stop takes its server with it", async () => {
  const owner = startOwner();
  const url = await owner.url;
  owner.child.stdin.write("exit\n");
  expect((await once(owner.child, "exit"))[0]).toBe(1);
  const refused = () => query(url, "SELECT 1").catch((error: Error) => error.message);
  await expect.poll(refused, { timeout: 20_000 }).toContain("ECONNREFUSED");
  await expect.poll(clusterPid, { timeout: 20_000 }).toBe(0);
});

test("of two starts at the same moment one gets the directory and the other says who has it", async () => {
  for (let round = 0; round < 3; round++) {
    const pair = [startOwner(), startOwner()];
    const results = await Promise.allSettled(pair.map(({ url }) => url));
    const [refused] = results.filter((result) => result.status === "rejected");
    const winner = pair[results.findIndex((result) => result.status === "fulfilled")];
    expect(refused?.reason.message).toMatch(
      /^error: DATA_DIR .* is in use by (process \d+|another process)$/,
    );
    expect(await query((await winner?.url) ?? "", "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await Promise.all(pair.map((owner) => owner.end()));
  }
});

test("an owner killed while it makes the database leaves nothing that is taken for one", async () => {
  const owner = startOwner();
  const home = join(dataDir, "postgres");
  const begun = async () => {
    const names = await readdir(home).catch((): string[] => []);
    return names.some((name) => /^initializing-\w+$/.test(name));
  };
  await expect.poll(begun, { interval: 2, timeout: 20_000 }).toBe(true);
  await kill(owner);
  expect(await readdir(home)).not.toContain("cluster");
  await withDatabase(async (url) => expect(await query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]));
  // The helper of the killed owner may have been at work still; the next start clears what it left.
  await withDatabase(async () => undefined);
  const left = (await readdir(home)).filter((name) => !name.startsWith("postgresql-"));
  expect(left.sort()).toEqual(["cluster", "lock"]);
});

test("an owner killed while its server comes up is followed by one that starts", async () => {
  await withDatabase(async () => undefined);
  const owner = startOwner();
  await expect.poll(clusterPid, { interval: 1, timeout: 20_000 }).not.toBe(0);
  await kill(owner);
  await withDatabase(async (url) => expect(await query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]));
});

test("a process that has got the dead server's id is left in peace and keeps nobody from starting", async () => {
  const pidFile = await leaveStalePidFile();
  const { uid, gid } = await stat(pidFile);
  // Under the server's own user: only such a process would PostgreSQL itself take for a server.
  const bystander = spawn("sleep", ["600"], {
    stdio: "ignore",
    ...(process.getuid?.() === 0 ? { uid, gid } : {}),
  });
  try {
    const lines = (await readFile(pidFile, "utf8")).split("\n");
    await writeFile(pidFile, [bystander.pid, ...lines.slice(1)].join("\n"));
    await withDatabase(async (url) =>
      expect(await query(url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]),
    );
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  } finally {
    bystander.kill("SIGKILL");
  }
});

test("a server on another directory whose id stands in our file is left in peace", async () => {
  const elsewhere = await temporaryDirectory();
  const other = spawnOwner({ dataDir: elsewhere, durable: false, temporary: true });
  try {
    const url = await other.url;
    const otherPid = await postmasterPid(join(await homeOf(elsewhere), "cluster"));
    const pidFile = await leaveStalePidFile();
    const lines = (await readFile(pidFile, "utf8")).split("\n");
    await writeFile(pidFile, [otherPid, ...lines.slice(1)].join("\n"));
    await withDatabase(async (own) => expect(await query(own, "SELECT 1 AS one")).toEqual([{ one: 1 }]));
    expect(await query(url, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
  } finally {
    await other.end();
  }
});

test("an empty pid file of a crash in the middle of a start keeps nobody from starting", async () => {
  const pidFile = await leaveStalePidFile();
  await writeFile(pidFile, "");
  await utimes(pidFile, 0, 0);
  await withDatabase(async (url) =>
    expect(await query(url, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]),
  );
});
