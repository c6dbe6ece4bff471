/** A replica that delivers, as a process of its own: node destination-process.ts <database URL> <limits as JSON>. */
import { connectDatabase } from "../../../lib/database/connect.ts";
import { createLog } from "../../../lib/runtime/log.ts";
import { runProcess } from "../../../lib/service/process.ts";
import type { DestinationTables } from "../../../services/destination/store.ts";
import { startReplica } from "./destination-replica.ts";

await runProcess(async () => {
  const [url = "", limits = "{}"] = process.argv.slice(2);
  const log = createLog({ name: "replica", level: "info" });
  const database = connectDatabase<DestinationTables>({ url, schema: "destination", log });
  const replica = startReplica({ database, log, limits: JSON.parse(limits) });
  log.info("delivering");
  return {
    log,
    async stop() {
      await replica.stop();
      await database.destroy();
    },
  };
});
