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

/** Largest resident memory of processes since their start, summed up, MiB. Linux only. */
export function peakMemoryMib(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return sum + Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
  }, 0);
}
