import { SpeechService } from "../../../gen/media/speech/v1/speech_service_pb.ts";
import { portVar, processSpec, readConfig, wordVar } from "../../runtime/config.ts";
import { logListening } from "../../runtime/listening.ts";
import { createLog } from "../../runtime/log.ts";
import { runProcess } from "../process.ts";
import { startRpcServer } from "../../rpc/server.ts";

await runProcess(async (signal) => {
  const faults = ["none", "at-stop", "never-stops", "uncaught", "unhandled", "at-start", "never-starts", "starts-late"] as const;
  const config = readConfig({ ...processSpec, PORT: portVar(), FAULT: wordVar(faults)({ default: "none" }) });
  const log = createLog({ name: "sample", level: config.LOG_LEVEL });
  if (config.FAULT === "at-start") throw new Error("broken part");
  const server = await startRpcServer({
    host: "127.0.0.1",
    port: config.PORT,
    services: [SpeechService],
    routes: () => undefined,
    readiness: async () => [],
    log,
  });
  if (config.FAULT === "uncaught") process.on("SIGUSR2", () => server.health.problems.call(undefined));
  if (config.FAULT === "unhandled") process.on("SIGUSR2", () => void Promise.reject(new Error("nobody caught this")));
  logListening(log, "rpc", "127.0.0.1", server.port);
  const told = new Promise((resolve) => signal.addEventListener("abort", resolve));
  if (config.FAULT === "never-starts") throw new Error(`gave up the start: ${await told}`);
  if (config.FAULT === "starts-late") await told;
  return {
    log,
    async stop() {
      log.info("stopping");
      if (config.FAULT === "at-stop") throw new Error("part that does not stop");
      if (config.FAULT === "never-stops") await new Promise(() => undefined);
      await server.drain({ delayMs: config.DRAIN_DELAY_MS, timeoutMs: 1000 });
      log.info("stopped");
    },
  };
});
