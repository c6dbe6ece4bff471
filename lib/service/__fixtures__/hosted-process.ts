import { writeSync } from "node:fs";
import { addressLimitSpec } from "../../rate-limit/address-limiter.ts";
import { processSpec, readConfig, wordVar } from "../../runtime/config.ts";
import { runHosted } from "../host.ts";

/** At once and in order, as a log is not when a process exits. */
const ended = (part: string) => void writeSync(2, `${part} ended\n`);
const faults = ["none", "at-start", "at-stop", "later"] as const;

await runHosted({
  name: "sample",
  readConfig: () =>
    readConfig({ ...processSpec, ...addressLimitSpec, FAULT: wordVar(faults)({ default: "none" }) }),
  async start(host, { FAULT }) {
    const { log } = host;
    host.onStop(async () => ended("first"));
    host.onStop(async () => {
      if (FAULT === "at-stop") throw new Error("part that does not end");
    });
    if (FAULT === "at-start") throw new Error("broken part");
    host.onStop(async () => ended("second"));
    if (FAULT === "later") process.once("SIGUSR2", () => void host.fail());
    log.info("serving");
    setInterval(() => undefined, 1000);
  },
});
