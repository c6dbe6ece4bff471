/**
 * A process that owns an embedded PostgreSQL until its stdin ends, however its parent ended; input makes it exit at
 * once, without a stop. Its argument is OwnerOptions as JSON; it writes the URL as its one line, or why it can't start
 * and exits 1.
 */
import { silentLog } from "../../../lib/runtime/log.ts";
import { startFailure } from "../../../lib/service/process.ts";
import { startEmbeddedPostgres } from "../../../standalone/embedded-postgres.ts";
import type { OwnerOptions } from "./owner-process.ts";
import { removeDataDirectory } from "./temporary-directory.ts";

const { dataDir, durable, temporary } = JSON.parse(process.argv[2] ?? "{}") as OwnerOptions;

// A parent that is gone reads nothing any more; the end of stdin says so.
process.stdout.on("error", () => undefined);

try {
  const options = { dataDir, log: silentLog, ...(durable === undefined ? {} : { durable }) };
  const postgres = await startEmbeddedPostgres(options);
  process.stdout.write(`${postgres.url}\n`);
  process.stdin.once("data", () => process.exit(1));
  process.stdin.once("end", async () => {
    await postgres.stop();
    if (temporary) await removeDataDirectory(dataDir);
    process.exit(0);
  });
} catch (thrown) {
  process.stderr.write(`${startFailure(thrown)}\n`);
  process.exitCode = 1;
}
