import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { medianOf, quantileOf, runLoad } from "../load.ts";
import { cpuMsOf, memoryMibOf, treeCpuMsOf } from "../process-usage.ts";
import { pidsOf, type Target } from "../targets.ts";
import { type WorkloadName, workloads } from "../workloads.ts";
import { type IdleCost, watchIdle } from "./idle.ts";

/** How much to measure. */
export interface TableSize {
  readonly rounds: number;
  /** Requests of a round, and of the warm-up before the first. */
  readonly requests: Readonly<Record<WorkloadName, number>>;
  /** How long everything rests before it is watched while nobody asks for anything. */
  readonly settleMs: number;
  readonly watchMs: number;
}

/** What a round of one target came to; CPU in milliseconds a request. */
export interface Round {
  readonly cpuMs: number;
  /** The same by process. */
  readonly cpuMsOfEach: Readonly<Record<string, number>>;
  /** PostgreSQL and Kafka. */
  readonly storesMs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What was measured of a target; rounds of the same index were beside each other. */
export interface TargetFigures {
  readonly rounds: Readonly<Partial<Record<WorkloadName, readonly Round[]>>>;
  readonly idle: readonly IdleCost[];
  readonly idleMib: number;
  /** The most of all samples under load. */
  readonly peakMib: number;
}

/** What was measured of all targets. */
export interface Figures {
  readonly plain: TargetFigures;
  readonly standalone: TargetFigures;
  readonly processes: TargetFigures;
  /** Of each round of `one`: what PostgreSQL takes for one committed change of a row. */
  readonly commitMs: readonly number[];
}

/** The targets, all of which run at the same time. */
export type Targets = Readonly<Record<"plain" | "standalone" | "processes", Target>>;

/** Fetches, writes and settlements that a request has left to be done have ended by then. */
const tailMs = 500;
const sampleMs = 200;
const commits = 100;
/** The plain proxy's requests are so short that clock ticks of 10 ms would show. */
const plainRequests: Readonly<Record<WorkloadName, number>> = { burst: 3, paced: 1, one: 3, image: 1 };

/** Measures idle targets first, then each load in rounds, every target in each, so that a machine drifts for all. */
export async function measureTable(
  targets: Targets,
  parts: ReadonlySet<WorkloadName | "idle">,
  size: TableSize,
  onPart: (part: string) => void,
): Promise<Figures> {
  const order = [targets.plain, targets.standalone, targets.processes];
  if (parts.has("idle")) {
    onPart("idle");
    await delay(size.settleMs);
  }
  const idleMib = order.map((target) => memoryMibOf(pidsOf(target)));
  const idle = parts.has("idle") ? await watchIdle(order, size.watchMs) : [];
  const peaks = new Map<Target, number>();
  const rounds = new Map<Target, Partial<Record<WorkloadName, Round[]>>>(order.map((target) => [target, {}]));
  const commitMs: number[] = [];
  for (const name of Object.keys(workloads) as WorkloadName[]) {
    if (!parts.has(name)) continue;
    onPart(workloads[name].title);
    for (const target of order) await measureRound(target, name, size.requests[name], peaks);
    for (let round = 0; round < size.rounds; round += 1) {
      for (const target of order) {
        const measured = await measureRound(target, name, size.requests[name], peaks);
        const all = rounds.get(target) ?? {};
        all[name] = [...(all[name] ?? []), measured];
      }
      if (name === "one") commitMs.push(await measureCommit(targets.processes.databaseUrl));
    }
  }
  const figuresOf = (target: Target): TargetFigures => ({
    rounds: rounds.get(target) ?? {},
    idle: idle[order.indexOf(target)] ?? [],
    idleMib: idleMib[order.indexOf(target)] ?? 0,
    peakMib: peaks.get(target) ?? 0,
  });
  return {
    plain: figuresOf(targets.plain),
    standalone: figuresOf(targets.standalone),
    processes: figuresOf(targets.processes),
    commitMs,
  };
}

async function measureRound(
  target: Target,
  name: WorkloadName,
  requests: number,
  peaks: Map<Target, number>,
): Promise<Round> {
  const workload = workloads[name];
  const wanted = target.isProxy ? requests * plainRequests[name] : requests;
  const pids = pidsOf(target);
  const stores = Object.values(target.stores);
  const read = () => [...pids.map((pid) => cpuMsOf([pid])), ...stores.map(treeCpuMsOf)];
  const before = read();
  const sample = () => peaks.set(target, Math.max(peaks.get(target) ?? 0, memoryMibOf(pids)));
  const sampling = setInterval(sample, sampleMs);
  const load = { requests: wanted, concurrency: workload.concurrency };
  const { seconds, firstByteMs } = await runLoad([workload.exchangeOf(target)], load).finally(() =>
    clearInterval(sampling),
  );
  sample();
  await delay(tailMs);
  const used = read().map((ms, index) => (ms - (before[index] ?? 0)) / wanted);
  const sum = (ms: readonly number[]) => ms.reduce((total, each) => total + each, 0);
  return {
    cpuMs: sum(used.slice(0, pids.length)),
    cpuMsOfEach: Object.fromEntries(
      Object.keys(target.processes).map((process, index) => [process, used[index] ?? 0]),
    ),
    storesMs: sum(used.slice(pids.length)),
    perSecond: wanted / seconds,
    p50Ms: quantileOf(firstByteMs, 0.5),
    p99Ms: quantileOf(firstByteMs, 0.99),
  };
}

/** What a hold waits for at the least: the median time of one committed change of a row, a round trip each. */
async function measureCommit(databaseUrl: string | undefined): Promise<number> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query("CREATE TABLE IF NOT EXISTS bench_commit (id int PRIMARY KEY, n int NOT NULL)");
    await client.query("INSERT INTO bench_commit VALUES (1, 0) ON CONFLICT DO NOTHING");
    const tookMs: number[] = [];
    for (let index = 0; index < commits; index += 1) {
      const startedMs = performance.now();
      await client.query("UPDATE bench_commit SET n = n + 1 WHERE id = 1");
      tookMs.push(performance.now() - startedMs);
    }
    return medianOf(tookMs);
  } finally {
    await client.end();
  }
}
