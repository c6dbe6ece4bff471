import { openLimits } from "../../lib/service/open-limits.ts";
import { runService } from "../../lib/service/run-service.ts";
import { openProviders } from "../../providers/registry.ts";
import { readSpeechConfig } from "./config.ts";
import { openSpeech } from "./open-speech.ts";

await runService({
  name: "speech",
  readConfig: readSpeechConfig,
  open: async (host, config) =>
    openSpeech(host, config, { ...(await openProviders(host, config)), ...(await openLimits(host, config)) }),
});
