import { setTimeout as delay } from "node:timers/promises";
import { cpuMsOf, descendantsOf, treeCpuMsOf, wakeUpsOf } from "../process-usage.ts";
import type { Target } from "../targets.ts";

/** What a process costs while nobody asks for anything, a second. */
export interface IdleCost {
  readonly name: string;
  /** Whether it is one of ours; otherwise it is a store, with all that it has started. */
  readonly isOurs: boolean;
  readonly cpuMs: number;
  readonly wakeUps: number;
}

/** Watches targets for a while, all at the same time; the costs are in the order of the targets. */
export async function watchIdle(
  targets: readonly Target[],
  watchMs: number,
): Promise<readonly (readonly IdleCost[])[]> {
  const beganMs = performance.now();
  const before = targets.map(readTarget);
  await delay(watchMs);
  const seconds = (performance.now() - beganMs) / 1000;
  return targets.map((target, of) =>
    readTarget(target).map(({ name, isOurs, cpuMs, wakeUps }, index) => {
      const first = before[of]?.[index];
      const woken = [...wakeUps].map(([thread, count]) => count - (first?.wakeUps.get(thread) ?? 0));
      return {
        name,
        isOurs,
        cpuMs: (cpuMs - (first?.cpuMs ?? 0)) / seconds,
        wakeUps: woken.reduce((sum, count) => sum + count, 0) / seconds,
      };
    }),
  );
}

function readTarget({ processes, stores }: Target) {
  const ours = Object.entries(processes).map(([name, { pid }]) => {
    return { name, isOurs: true, cpuMs: cpuMsOf([pid]), wakeUps: wakeUpsOf([pid]) };
  });
  const others = Object.entries(stores).map(([name, pid]) => {
    return {
      name,
      isOurs: false,
      cpuMs: treeCpuMsOf(pid),
      wakeUps: wakeUpsOf([pid, ...descendantsOf(pid)]),
    };
  });
  return [...ours, ...others];
}
