import { join } from "node:path";
import pg from "pg";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { runnableBinaries } from "./postgres-binaries.ts";
import { ensureCluster, ownerRole } from "./postgres-cluster.ts";
import { locateHome, prepareDataDirectory } from "./postgres-home.ts";
import { type DirectoryLock, lockDirectory } from "./postgres-lock.ts";
import { launchServer, type PostgresServer } from "./postgres-server.ts";

/** A PostgreSQL server that this process runs for itself. */
export interface EmbeddedPostgres {
  /** URL with its password, good until `stop`; the port is another one after each start. */
  readonly url: string;
  /** Settles with the reason when the server has ended though nobody stopped it: the process can't go on. */
  readonly exited: Promise<Error>;
  /** Shuts down, cutting off whoever is still connected, and lets go of the data directory; never throws. */
  stop(): Promise<void>;
}

/** How to run the embedded server. */
export interface EmbeddedPostgresOptions {
  /** Made if it doesn't exist, and this process's alone while it runs. */
  readonly dataDir: string;
  readonly log: Log;
  readonly signal?: AbortSignal;
  /** False gives up durability for speed, for tests only; true unless given. */
  readonly durable?: boolean;
  /** How long a shutdown waits for running work to be written out; 20 s unless given. */
  readonly stopTimeoutMs?: number;
}

/**
 * Starts PostgreSQL on the data directory's database, making it on the first start, and returns when it answers. A
 * server that a killed process left behind is stopped first; a live owner is never disturbed. Throws StartError with
 * one clear line when it can't be done.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = await prepareDataDirectory(options.dataDir);
  const locks = [lockDirectory(dataDir)];
  try {
    return await start({ ...options, dataDir }, locks);
  } catch (thrown) {
    release(locks);
    throw thrown;
  }
}

async function start(options: EmbeddedPostgresOptions, locks: DirectoryLock[]): Promise<EmbeddedPostgres> {
  const {
    dataDir,
    log,
    signal = new AbortController().signal,
    durable = true,
    stopTimeoutMs = 20_000,
  } = options;
  const home = await locateHome(dataDir, log);
  // A copy of a data directory names the same home as its original, so the home is locked too.
  locks.push(lockDirectory(home.path));
  const binaries = await runnableBinaries(home.path, home.user);
  const password = await ensureCluster({ dataDir, home, binaries, log, signal, durable });
  const server = await launchServer({ home, binaries, log, signal, durable, stopTimeoutMs });
  const url = `postgres://${ownerRole}:${password}@127.0.0.1:${server.port}/postgres`;
  try {
    await login(url, join(dataDir, "postgres-password"));
  } catch (thrown) {
    await server.stop();
    throw thrown;
  }
  server.exited.then((error) => log.error({ err: error }, "PostgreSQL ended"));
  return { url, exited: server.exited, stop: () => stop(server, locks) };
}

async function stop(server: PostgresServer, locks: DirectoryLock[]): Promise<void> {
  await server.stop();
  release(locks);
}

function release(locks: DirectoryLock[]): void {
  for (const lock of locks) lock.release();
}

/** Proves that the server answers and that the password is its own. */
async function login(url: string, passwordFile: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch (thrown) {
    const wrongPassword = (thrown as { code?: string }).code === "28P01";
    throw wrongPassword ? new StartError(`the password in ${passwordFile} is not the database's`) : thrown;
  } finally {
    await client.end();
  }
}
