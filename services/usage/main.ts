import { runService } from "../../lib/service/run-service.ts";
import { readUsageConfig } from "./config.ts";
import { openUsage } from "./open-usage.ts";

await runService({ name: "usage", readConfig: readUsageConfig, open: openUsage });
