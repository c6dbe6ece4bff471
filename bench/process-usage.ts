import { readdirSync, readFileSync } from "node:fs";

/** Clock ticks a second of /proc/<pid>/stat; 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU time that processes have used so far, user and system, milliseconds. Linux only. */
export function cpuMsOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuTicks(pid), 0) * (1000 / ticksPerSecond);
}

function cpuTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}

/** Largest resident memory of processes since their start, MiB. */
export interface PeakMemory {
  /** What each had, summed up: pages that several map, such as those of Node itself, are in it several times. */
  readonly summedMib: number;
  /** The same with pages of files counted once, as much as the process has that maps most of them. */
  readonly filesOnceMib: number;
}

/** Peak memory of processes. Linux only. */
export function peakMemoryOf(pids: readonly number[]): PeakMemory {
  const all = pids.map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const mib = (name: string) =>
      Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0) / 1024;
    return { peak: mib("VmHWM"), files: mib("RssFile") };
  });
  const summedMib = all.reduce((sum, { peak }) => sum + peak, 0);
  const files = all.reduce((sum, each) => sum + each.files, 0);
  return { summedMib, filesOnceMib: summedMib - files + Math.max(0, ...all.map((each) => each.files)) };
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

/** CPU time of a process, of those that it has started and of those of them that have ended, milliseconds. Linux only. */
export function treeCpuMsOf(root: number): number {
  const ticks = [root, ...descendantsOf(root)].map((pid) => {
    const fields = statFields(pid);
    return [11, 12, 13, 14].reduce((sum, field) => sum + Number(fields[field] ?? 0), 0);
  });
  return ticks.reduce((sum, each) => sum + each, 0) * (1000 / ticksPerSecond);
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
