import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../lib/runtime/log.ts";
import { stopOrphan } from "../../../standalone/postgres-orphan.ts";
import { endWithFile } from "../processes/leftovers.ts";

/** Of directories that are still there, by path: what says that they are gone. */
const gone = new Map<string, () => void>();

/**
 * A fresh directory that every user may pass through, so that the server's user can when the tests run as root. At the
 * end of the test file it is removed, with the database server that runs on it.
 */
export async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "media-gateway-test-"));
  await chmod(directory, 0o711);
  gone.set(
    directory,
    endWithFile(() => removeDataDirectory(directory)),
  );
  return directory;
}

/** The server's directory in or beside a data directory that has been started once. */
export async function homeOf(dataDir: string): Promise<string> {
  const elsewhere = await readFile(join(dataDir, "postgres-location"), "utf8").catch(() => undefined);
  return elsewhere?.trim() ?? join(dataDir, "postgres");
}

/** Removes a data directory and its database, wherever that is; a server that still runs on it is stopped. */
export async function removeDataDirectory(dataDir: string): Promise<void> {
  const path = await homeOf(dataDir);
  await stopOrphan({ path, cluster: join(path, "cluster"), user: undefined }, "pg_ctl", silentLog);
  await rm(path, { recursive: true, force: true, maxRetries: 5 });
  await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  gone.get(dataDir)?.();
  gone.delete(dataDir);
}
