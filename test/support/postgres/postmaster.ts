import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { postmasterPid } from "../../../standalone/postgres-orphan.ts";
import { homeOf } from "./temporary-directory.ts";

/** The process of the database server that a data directory's `postmaster.pid` names; undefined without one. */
export async function postmasterOf(dataDir: string): Promise<number | undefined> {
  return postmasterPid(await clusterOf(dataDir));
}

/** Linux: every database server that runs on a data directory now, whoever started it. */
export async function postmastersOn(dataDir: string): Promise<number[]> {
  const cluster = await clusterOf(dataDir);
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const servers = await Promise.all(pids.map(async (pid) => ((await isOn(pid, cluster)) ? [pid] : [])));
  const found = new Set(servers.flat());
  const parents = await Promise.all([...found].map(async (pid) => [pid, await parentOf(pid)] as const));
  // What a server has just forked bears its command until it has given itself a title.
  return parents.filter(([, parent]) => parent !== undefined && !found.has(parent)).map(([pid]) => pid);
}

async function isOn(pid: number, cluster: string): Promise<boolean> {
  // Empty for what has ended and was not yet waited for.
  const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
  return words[words.indexOf("-D") + 1] === cluster;
}

/** Undefined once it has ended. proc_pid_stat(5): the fourth field; the second one may hold spaces and ends with the last parenthesis. */
async function parentOf(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  return stat === undefined ? undefined : Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}

async function clusterOf(dataDir: string): Promise<string> {
  return join(await homeOf(dataDir), "cluster");
}
