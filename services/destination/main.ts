import { runService } from "../../lib/service/run-service.ts";
import { readDestinationConfig } from "./config.ts";
import { openDestination } from "./open-destination.ts";

await runService({ name: "destination", readConfig: readDestinationConfig, open: openDestination });
