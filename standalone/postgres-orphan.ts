/**
 * The server that an owner left behind when it was killed. Called only while the directory's lock is held, so whatever
 * still runs on the cluster has no owner.
 *
 * 1. A process is signalled only if it is a PostgreSQL server on this very cluster, looked up right before each signal:
 *    the process id in `postmaster.pid` may belong to anybody by now.
 * 2. `postmaster.pid` is never removed while it may be true: PostgreSQL finds in it the shared memory that orphaned
 *    backends still use, and refuses to start beside them.
 */
import { execFile } from "node:child_process";
import { chown, readFile, readlink, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import type { Log } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { serverProcess } from "./postgres-binaries.ts";
import type { ServerHome } from "./postgres-home.ts";

const run = promisify(execFile);

/** Fast shutdown, which writes everything out, then immediate shutdown, which leaves that to recovery. */
const stages = [
  { signal: "SIGINT", waitMs: 60_000 },
  { signal: "SIGQUIT", waitMs: 15_000 },
] as const;

const pollMs = 20;

/** Age at which a `postmaster.pid` without content is no longer being written. */
const emptyFileMs = 2000;

/**
 * Stops the server that still runs on the home's cluster, if there is one; `pgCtl` is the control program that Windows
 * needs for it. Throws StartError when the server doesn't stop.
 */
export async function stopOrphan(home: ServerHome, pgCtl: string, log: Log): Promise<void> {
  const pid = await postmasterPid(home.cluster);
  if (pid === undefined) return;
  if (process.platform === "win32") return stopByControlProgram(home, pgCtl);
  if (!(await isServerOf(pid, home.cluster))) {
    if (isAlive(pid)) await replaceStalePid(home); // 2.
    return;
  }
  log.warn({ pid }, "stopping the PostgreSQL server that an earlier process left behind");
  for (const { signal, waitMs } of stages) {
    const deadline = AbortSignal.timeout(waitMs);
    if (!(await isServerOf(pid, home.cluster))) return; // 1.
    sendSignal(pid, signal);
    while (!deadline.aborted) {
      await delay(pollMs);
      if (!(await isServerOf(pid, home.cluster))) return;
    }
  }
  throw new StartError(`PostgreSQL process ${pid} on ${home.cluster} does not stop; end it and start again`);
}

/** The process that `postmaster.pid` names in its first line; undefined without one. */
export async function postmasterPid(cluster: string): Promise<number | undefined> {
  const file = join(cluster, "postmaster.pid");
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const pid = Math.abs(Number.parseInt(text, 10));
  if (pid > 0) return pid;
  const { mtimeMs } = await stat(file);
  if (Date.now() - mtimeMs > emptyFileMs) await rm(file, { force: true });
  return undefined;
}

/** Whether `pid` is a PostgreSQL server that was started on `cluster` or works in it. */
async function isServerOf(pid: number, cluster: string): Promise<boolean> {
  const command = await commandLine(pid);
  const program = basename(command[0] ?? "");
  if (program !== "postgres") return false;
  if (command[command.indexOf("-D") + 1] === cluster) return true;
  const [working, own] = await Promise.all([readlink(`/proc/${pid}/cwd`).then(stat), stat(cluster)]).catch(
    () => [],
  );
  return working !== undefined && own !== undefined && working.dev === own.dev && working.ino === own.ino;
}

/** The words of a process's command; none when there is no such process. */
async function commandLine(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => undefined);
  if (text !== undefined) return text.split("\0");
  if (process.platform === "linux") return [];
  const { stdout } = await run("ps", ["-o", "command=", "-p", String(pid)]).catch(() => ({ stdout: "" }));
  return stdout.trim().split(/ (?=-[Dc] )|(?<=-[Dc]) /);
}

function isAlive(pid: number): boolean {
  return sendSignal(pid, 0) !== "ESRCH";
}

/** Sends a signal, or only looks with 0; returns the error code if that failed. */
function sendSignal(pid: number, signal: NodeJS.Signals | 0): string | undefined {
  try {
    process.kill(pid, signal);
    return undefined;
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code;
  }
}

/**
 * Puts this process in the place of an unrelated one: PostgreSQL doesn't take its own parent for another server, and
 * still examines the shared memory that the other lines name.
 */
async function replaceStalePid({ cluster, user }: ServerHome): Promise<void> {
  const file = join(cluster, "postmaster.pid");
  const text = await readFile(file, "utf8");
  const replaced = `${file}.replaced`;
  await writeFile(replaced, text.replace(/^-?\d+/, String(process.pid)), { mode: 0o600 });
  if (user !== undefined) await chown(replaced, user.uid, user.gid);
  await rename(replaced, file);
}

/** Windows has no signals; pg_ctl speaks to a server through a pipe that only a server listens on. */
async function stopByControlProgram({ cluster, user }: ServerHome, pgCtl: string): Promise<void> {
  await run(pgCtl, ["stop", "-D", cluster, "-m", "fast", "-w"], serverProcess(user)).catch(() => undefined);
}
