import pg from "pg";
import { type OwnerProcess, spawnOwner } from "../support/postgres/owner-process.ts";
import { postmasterOf, postmastersOn } from "../support/postgres/postmaster.ts";
import { removeDataDirectory, temporaryDirectory } from "../support/postgres/temporary-directory.ts";
import type { Absences } from "../support/processes/absences.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { waitUntil } from "../support/wait-until.ts";

/** A durable PostgreSQL of a test's own that can go away and come back under the same URL. */
export interface CrashDatabase {
  readonly url: string;
  /** The rows of a statement, on a connection of its own. */
  query<R extends pg.QueryResultRow>(statement: string, values?: readonly unknown[]): Promise<R[]>;
  /** Shuts the server down, which ends its connections. */
  stop(): Promise<void>;
  /** SIGKILL to the server's first process; resolves when that is gone. Its children end by themselves. */
  kill(): Promise<void>;
  /** Starts a server that was stopped or killed, on the same data. */
  start(): Promise<void>;
  /** Ends the server and removes its data. */
  close(): Promise<void>;
}

const patience = { timeoutMs: 120_000, intervalMs: 50 };

/** What absences call it. */
export const databaseName = "database";

/** Makes and starts one. It ends with this process, even if this one is killed. */
export async function startCrashDatabase(absences: Absences): Promise<CrashDatabase> {
  const dataDir = await temporaryDirectory();
  const proxy = await startTcpProxy();
  let owner: OwnerProcess | undefined;
  const start = async () => {
    await owner?.end();
    owner = spawnOwner({ dataDir, durable: true });
    const url = new URL(await owner.url);
    proxy.connectTo(Number(url.port));
    absences.end(databaseName);
    url.port = String(proxy.port);
    return url.href;
  };
  const stop = async () => {
    absences.begin(databaseName);
    proxy.goAway();
    await owner?.end();
  };
  const close = async () => {
    await stop();
    await proxy.close();
    await removeDataDirectory(dataDir);
  };
  try {
    const url = await start();
    return {
      url,
      query: (statement, values) => query(url, statement, values),
      stop,
      async kill() {
        absences.begin(databaseName);
        proxy.goAway();
        process.kill((await postmasterOf(dataDir)) ?? Number.NaN, "SIGKILL");
        await waitUntil(async () => (await postmastersOn(dataDir)).length === 0, patience);
      },
      async start() {
        await start();
      },
      close,
    };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}

async function query<R extends pg.QueryResultRow>(
  url: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<R>(statement, [...values])).rows;
  } finally {
    await client.end();
  }
}
