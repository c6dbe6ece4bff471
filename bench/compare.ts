import { type Load, quantileOf, runLoad } from "./load.ts";
import { cpuMsOf, peakMemoryOf } from "./process-usage.ts";
import type { Target } from "./targets.ts";

/** One kind of request, sent to every target. */
export interface Workload {
  readonly name: string;
  /** Requests in flight. */
  readonly concurrency: number;
  /** What to send to a target, and what must come back. */
  load(target: Target): Pick<Load, "url" | "body" | "isWhole">;
}

/** How much to measure. */
export interface ComparisonSize {
  readonly rounds: number;
  /** Requests a round. */
  readonly requests: number;
}

interface Figures {
  readonly cpuMs: number;
  /** The same of each process, in their order. */
  readonly cpuMsOfEach: readonly number[];
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What it takes until the code of every process has been compiled for speed, requests. */
const minWarmUpRequests = 800;

/**
 * Measures the targets in turn, round by round, so that a machine whose speed drifts drifts for all of them, and prints
 * medians. The first target is the yardstick. Resolves with how many requests each target has had.
 */
export async function compare(
  targets: readonly Target[],
  workload: Workload,
  size: ComparisonSize,
): Promise<number> {
  const figures = new Map<Target, Figures[]>(targets.map((target) => [target, []]));
  const warmUp = Math.max(minWarmUpRequests, Math.ceil(size.requests / 4));
  for (const target of targets) await measure(target, workload, warmUp);
  for (let round = 0; round < size.rounds; round++) {
    for (const target of targets) figures.get(target)?.push(await measure(target, workload, size.requests));
  }
  const { rounds, requests } = size;
  console.log(
    `${workload.name}, ${workload.concurrency} in flight (${rounds} rounds of ${requests} requests)`,
  );
  print(figures);
  return warmUp + rounds * requests;
}

/** Prints the peak memory of every target since its start. */
export function printPeakMemory(targets: readonly Target[]): void {
  console.log("peak memory, MiB, and with the pages of files that processes share counted once:");
  for (const { name, processes } of targets) {
    const { summedMib, filesOnceMib } = peakMemoryOf(Object.values(processes));
    console.log(`  ${name.padEnd(14)}${summedMib.toFixed(0).padEnd(6)}${filesOnceMib.toFixed(0)}`);
    const each = Object.entries(processes).map(
      ([process, pid]) => `${process} ${peakMemoryOf([pid]).summedMib.toFixed(0)}`,
    );
    if (each.length > 1) console.log(`  ${"".padEnd(14)}${each.join("  ")}`);
  }
}

async function measure(target: Target, workload: Workload, requests: number): Promise<Figures> {
  const { apiKey } = target;
  const pids = Object.values(target.processes);
  const beforeMs = pids.map((pid) => cpuMsOf([pid]));
  const load = { ...workload.load(target), apiKey, requests, concurrency: workload.concurrency };
  const { seconds, firstByteMs } = await runLoad(load);
  const cpuMsOfEach = pids.map((pid, index) => (cpuMsOf([pid]) - (beforeMs[index] ?? 0)) / requests);
  return {
    cpuMs: cpuMsOfEach.reduce((sum, ms) => sum + ms, 0),
    cpuMsOfEach,
    perSecond: requests / seconds,
    p50Ms: quantileOf(firstByteMs, 0.5),
    p99Ms: quantileOf(firstByteMs, 0.99),
  };
}

function print(figures: ReadonlyMap<Target, readonly Figures[]>): void {
  const plain = median([...figures.values()][0]?.map(({ cpuMs }) => cpuMs) ?? []);
  for (const [target, rows] of figures) {
    const cpu = rows.map(({ cpuMs }) => cpuMs).sort((a, b) => a - b);
    const columns = [
      target.name.padEnd(14),
      `CPU ${median(cpu).toFixed(2)} ms [${cpu[0]?.toFixed(2)}–${cpu.at(-1)?.toFixed(2)}]`,
      `× ${(median(cpu) / plain).toFixed(1)}`,
      `${median(rows.map(({ perSecond }) => perSecond)).toFixed(0)}/s`,
      `first byte p50 ${median(rows.map(({ p50Ms }) => p50Ms)).toFixed(1)} ms`,
      `p99 ${median(rows.map(({ p99Ms }) => p99Ms)).toFixed(1)} ms`,
    ];
    console.log(`  ${columns.join("  ")}`);
    const each = Object.keys(target.processes).map((process, index) => {
      return `${process} ${median(rows.map(({ cpuMsOfEach }) => cpuMsOfEach[index] ?? 0)).toFixed(2)}`;
    });
    if (each.length > 1) console.log(`  ${"".padEnd(14)}of these ${each.join("  ")}`);
  }
}

function median(samples: readonly number[]): number {
  return quantileOf(
    [...samples].sort((a, b) => a - b),
    0.5,
  );
}
