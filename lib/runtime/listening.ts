import type { Log } from "./log.ts";

/**
 * Says on the log that a port is open: `what` is `rest`, `rpc` or `metrics`. Whoever starts a process on port 0 reads
 * the real one from this line.
 */
export function logListening(log: Log, what: "rest" | "rpc" | "metrics", host: string, port: number): void {
  log.info({ what, host, port }, "listening");
}
