import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks a second of /proc/<pid>/stat; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU time that processes have used so far, user and system, milliseconds. Linux only. */
export function cpuMsOf(pids: readonly number[]): number {
  return sumTicks(pids, [11, 12]);
}

/** CPU time of a process, of those that it has started and of those of them that have ended, milliseconds. Linux only. */
export function treeCpuMsOf(root: number): number {
  return sumTicks([root, ...descendantsOf(root)], [11, 12, 13, 14]);
}

/** CPU time of what this process has started and what that has started, milliseconds, without its own. Linux only. */
export function cpuMsOfDescendants(): number {
  return cpuMsOf(descendantsOf(process.pid));
}

/** Sums fields of /proc/<pid>/stat; of a process that has ended there are none. */
function sumTicks(pids: readonly number[], fields: readonly number[]): number {
  const ticks = pids.flatMap((pid) => {
    const all = statFields(pid);
    return fields.map((field) => Number(all[field] ?? 0));
  });
  return ticks.reduce((sum, each) => sum + each, 0) * (1000 / ticksPerSecond);
}

/** The most memory that a process has had resident since its start, MiB. Linux only. */
export function peakMibOf(pid: number): number {
  return statusMib(pid, "VmHWM");
}

/**
 * What processes have resident now, MiB, with the pages of files that several of them map counted once: as much as the
 * one has that maps most of them, nearly all of it Node itself. Unlike PSS it does not depend on who else runs Node on
 * the machine. Linux only.
 */
export function memoryMibOf(pids: readonly number[]): number {
  const own = pids.map((pid) => statusMib(pid, "RssAnon") + statusMib(pid, "RssShmem"));
  return (
    own.reduce((sum, each) => sum + each, 0) + Math.max(0, ...pids.map((pid) => statusMib(pid, "RssFile")))
  );
}

/** Resident memory of a process and its proportional share of it, MiB. Linux only. */
export function residentMibOf(pid: number): { readonly rss: number; readonly pss: number } {
  const rollup = textOf(`/proc/${pid}/smaps_rollup`);
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1] ?? 0) / 1024;
  return { rss: mib("Rss"), pss: mib("Pss") };
}

/** How often each thread of processes has gone from waiting to work so far, by its id. Linux only. */
export function wakeUpsOf(pids: readonly number[]): ReadonlyMap<string, number> {
  const threads = pids.flatMap((pid) =>
    entriesOf(`/proc/${pid}/task`).map((id) => `/proc/${pid}/task/${id}`),
  );
  return new Map(
    threads.map((thread) => {
      const status = textOf(`${thread}/status`);
      return [thread, Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0)];
    }),
  );
}

/** All processes that a process has started, those that these have started included. Linux only. */
export function descendantsOf(pid: number): readonly number[] {
  const parents = entriesOf("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => [Number(name), Number(statFields(Number(name))[1])] as const);
  const below = (parent: number): number[] =>
    parents.filter(([, of]) => of === parent).flatMap(([child]) => [child, ...below(child)]);
  return below(pid);
}

/** The name of a process's program, empty once it has ended. Linux only. */
export function programOf(pid: number): string {
  return textOf(`/proc/${pid}/comm`).trim();
}

/** What stands in /proc/<pid>/stat behind the program's name. */
function statFields(pid: number): readonly string[] {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function statusMib(pid: number, name: string): number {
  const status = textOf(`/proc/${pid}/status`);
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0) / 1024;
}

/** Processes and threads may end at any moment. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
