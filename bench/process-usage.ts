import { readFileSync } from "node:fs";

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
