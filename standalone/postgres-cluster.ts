import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { type PostgresBinaries, serverProcess } from "./postgres-binaries.ts";
import { exists, type ServerHome, writeAtomically } from "./postgres-home.ts";

interface ClusterOptions {
  readonly dataDir: string;
  readonly home: ServerHome;
  readonly binaries: PostgresBinaries;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** False leaves out waiting for the disk, for tests. */
  readonly durable: boolean;
}

const run = promisify(execFile);

/** Name of the database's owner, the one role there is. */
export const ownerRole = "postgres";

/** Names of what a start that was cut short may leave in the home. */
const unfinished = /^(initializing|copying)-/;

const initTimeoutMs = 300_000;

/**
 * Makes sure that the home holds a whole cluster that these programs can read, and returns its owner's password. A new
 * one is made beside its place and moved there when it is complete. Throws StartError.
 */
export async function ensureCluster(options: ClusterOptions): Promise<string> {
  const { dataDir, home, binaries, log } = options;
  const passwordFile = join(dataDir, "postgres-password");
  const known = (await readFile(passwordFile, "utf8").catch(() => "")).trim();
  await removeUnfinished(home, log);
  if (await exists(home.cluster)) {
    await checkRelease(home.cluster, binaries);
    if (known !== "") return known;
    throw new StartError(
      `${passwordFile} is missing; without it the database in ${home.path} can't be opened`,
    );
  }
  const password = known || randomBytes(24).toString("base64url");
  if (known === "") await writeAtomically(passwordFile, `${password}\n`);
  await makeCluster(options, password);
  return password;
}

async function makeCluster({ home, binaries, durable, log, signal }: ClusterOptions, password: string) {
  log.info({ home: home.path, release: binaries.version }, "making an empty PostgreSQL database");
  const partial = join(home.path, `initializing-${randomBytes(6).toString("hex")}`);
  const passwordFile = `${partial}-password`;
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (home.user !== undefined) await chown(passwordFile, home.user.uid, home.user.gid);
  try {
    await run(
      binaries.initdb,
      [
        `--pgdata=${partial}`,
        `--username=${ownerRole}`,
        `--pwfile=${passwordFile}`,
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
        ...(durable ? [] : ["--no-sync"]),
      ],
      { ...serverProcess(home.user), cwd: home.path, signal, timeout: initTimeoutMs },
    );
    await rename(partial, home.cluster);
    if (durable) await syncDirectory(home.path);
  } catch (thrown) {
    signal.throwIfAborted();
    const { stderr = "", message } = thrown as Error & { stderr?: string };
    const why = stderr.trim().split("\n").slice(-3).join(" ") || message;
    throw new StartError(`PostgreSQL can't make a database in ${home.path}: ${why}`, { cause: thrown });
  } finally {
    await rm(passwordFile, { force: true });
  }
}

async function checkRelease(cluster: string, { version }: PostgresBinaries): Promise<void> {
  const found = (await readFile(join(cluster, "PG_VERSION"), "utf8").catch(() => "")).trim();
  const expected = version.split(".")[0];
  if (found === expected) return;
  if (found === "") throw new StartError(`${cluster} is not a PostgreSQL database`);
  throw new StartError(
    `${cluster} was made by PostgreSQL ${found} and this release brings PostgreSQL ${expected}; dump it with the ` +
      "release that made it and load the dump here, or move it away to begin with an empty database",
  );
}

/** What another process is still busy in (the helper of an owner that was killed) is left to the next start. */
async function removeUnfinished({ path }: ServerHome, log: Log): Promise<void> {
  for (const name of (await readdir(path)).filter((entry) => unfinished.test(entry))) {
    await rm(join(path, name), { recursive: true, force: true, maxRetries: 3 }).catch((thrown: unknown) =>
      log.debug({ err: thrown }, "leftovers stay"),
    );
  }
}

/** Makes a rename last; where directories can't be synced, the file system's own order has to do. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, "r").catch(() => undefined);
  await directory?.sync().catch(() => undefined);
  await directory?.close();
}
