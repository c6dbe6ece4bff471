import { ConfigError } from "../runtime/config.ts";
import type { Log } from "../runtime/log.ts";
import { StartError } from "../runtime/start-error.ts";

/** A process that runs until it is told to stop. */
export interface RunningProcess {
  readonly log: Log;
  stop(): Promise<void>;
}

/** How long a start that was told to end may take to do so. */
const abandonedStartMs = 20_000;

/**
 * Runs a process: starts it, stops it on SIGTERM or SIGINT and exits 0, exits 1 with one line on stderr when it can't
 * start, and 1 with a log line when something was thrown that nobody caught. Told to stop while it starts, it aborts
 * `signal` and stops what has started all the same. A second signal exits at once.
 */
export async function runProcess(start: (signal: AbortSignal) => Promise<RunningProcess>): Promise<void> {
  const starting = new AbortController();
  let running: RunningProcess | undefined;
  const onSignal = () => {
    if (starting.signal.aborted) process.exit(130);
    starting.abort();
    if (running !== undefined) void stop(running);
    else setTimeout(() => process.exit(1), abandonedStartMs);
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  process.on("uncaughtException", (thrown) => {
    if (running === undefined) process.stderr.write(`${startFailure(thrown)}\n`);
    else running.log.fatal({ err: thrown }, "uncaught exception");
    process.exit(1);
  });
  try {
    running = await start(starting.signal);
  } catch (thrown) {
    if (starting.signal.aborted) process.exit(0);
    process.stderr.write(`${startFailure(thrown)}\n`);
    process.exit(1);
  }
  if (starting.signal.aborted) await stop(running);
}

async function stop(running: RunningProcess): Promise<never> {
  try {
    await running.stop();
  } catch (thrown) {
    running.log.error({ err: thrown }, "stopping failed");
    process.exit(1);
  }
  process.exit(0);
}

/** Why a start failed, in one line for the operator. */
export function startFailure(thrown: unknown): string {
  if (thrown instanceof ConfigError || thrown instanceof StartError) return `error: ${thrown.message}`;
  if (!(thrown instanceof Error)) return `error: ${thrown}`;
  const { code, address, port, path }: NodeJS.ErrnoException & { address?: string; port?: number } = thrown;
  if (code === "EADDRINUSE") return `error: port ${port} on ${address} is in use; set another one`;
  if (code === "EADDRNOTAVAIL") return `error: ${address} is no address of this machine; set another one`;
  if (code === "EACCES" && port !== undefined)
    return `error: port ${port} on ${address} may not be opened by this user`;
  if (code === "EACCES" || code === "EROFS") return `error: ${path} is not writable`;
  return `error: ${thrown.stack ?? thrown.message}`;
}
