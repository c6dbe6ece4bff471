import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { postmasterPid } from "../../standalone/postgres-orphan.ts";
import { homeOf } from "./temporary-directory.ts";

/** The process of the database server that a data directory's `postmaster.pid` names; undefined without one. */
export async function postmasterOf(dataDir: string): Promise<number | undefined> {
  return postmasterPid(await clusterOf(dataDir));
}

/** Linux: every database server that runs on a data directory now, whoever started it. */
export async function postmastersOn(dataDir: string): Promise<number[]> {
  const cluster = await clusterOf(dataDir);
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Empty for what has ended and was not yet waited for.
      const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
      return words[words.indexOf("-D") + 1] === cluster ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

async function clusterOf(dataDir: string): Promise<string> {
  return join(await homeOf(dataDir), "cluster");
}
