import { openLimits } from "../../lib/service/open-limits.ts";
import { runService } from "../../lib/service/run-service.ts";
import { openProviders } from "../../providers/registry.ts";
import { readImageConfig } from "./config.ts";
import { openImage } from "./open-image.ts";

await runService({
  name: "image",
  readConfig: readImageConfig,
  open: async (host, config) =>
    openImage(host, config, { ...(await openProviders(host, config)), ...(await openLimits(host, config)) }),
});
