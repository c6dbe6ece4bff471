import { runService } from "../../lib/service/run-service.ts";
import { readAccountConfig } from "./config.ts";
import { openAccount } from "./open-account.ts";

await runService({
  name: "account",
  readConfig: readAccountConfig,
  open: (host, config) => openAccount(host, config),
});
