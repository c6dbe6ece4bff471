import { readdirSync, readFileSync } from "node:fs";
import { cpuMsOf } from "../process-usage.ts";

/** CPU time of what this process has started and what that has started, milliseconds, without its own. Linux only. */
export function cpuMsOfDescendants(): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    const parent = /^\d+$/.test(name) ? parentOf(Number(name)) : undefined;
    if (parent !== undefined) parents.set(Number(name), parent);
  }
  const isDescendant = (pid: number): boolean => {
    const parent = parents.get(pid);
    return parent !== undefined && (parent === process.pid || isDescendant(parent));
  };
  return [...parents.keys()].filter(isDescendant).reduce((sum, pid) => sum + cpuMsIfAlive(pid), 0);
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return undefined;
  }
}

function cpuMsIfAlive(pid: number): number {
  try {
    return cpuMsOf([pid]);
  } catch {
    return 0;
  }
}
