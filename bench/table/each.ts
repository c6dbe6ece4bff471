import { medianOf } from "../load.ts";
import type { Target } from "../targets.ts";
import { type WorkloadName, workloadNames } from "../workloads.ts";
import type { Figures, Round, TargetFigures, Targets } from "./measure.ts";

const calls = ["Reserve", "Settle"] as const;
const rates = [10, 100, 1000, 10_000];
/** Of a core: a replica is one event loop, and needs room. */
const mostOfReplica = 0.7;
/** Wherever a restart should not be seen. */
const leastReplicas = 2;

/** Prints what the table sums up, as docs/capacity.md shows it: each process, rates, first bytes, calls to account. */
export async function printEach(targets: Targets, figures: Figures): Promise<void> {
  const names = workloadNames.filter((name) => figures.plain.rounds[name] !== undefined);
  const medians = (target: TargetFigures, figureOf: (round: Round) => number) =>
    names.map((name) => medianOf((target.rounds[name] ?? []).map(figureOf)));
  const millis = (values: readonly number[]) => values.map((ms) => ms.toFixed(2));
  console.log("\nCPU a request, ms\n");
  printMarkdown(
    ["process", ...names],
    [
      ["plain proxy", ...millis(medians(figures.plain, ({ cpuMs }) => cpuMs))],
      ...Object.keys(targets.processes.processes).map((process) => [
        process,
        ...millis(medians(figures.processes, ({ cpuMsOfEach }) => cpuMsOfEach[process] ?? 0)),
      ]),
      ["all of them", ...millis(medians(figures.processes, ({ cpuMs }) => cpuMs))],
      ["their PostgreSQL and Kafka", ...millis(medians(figures.processes, ({ storesMs }) => storesMs))],
      ["everything in one process", ...millis(medians(figures.standalone, ({ cpuMs }) => cpuMs))],
      ["its PostgreSQL", ...millis(medians(figures.standalone, ({ storesMs }) => storesMs))],
    ],
  );
  console.log("\nrequests a second; first byte p50 / p99, ms\n");
  printMarkdown(
    ["target", ...names],
    (["plain", "processes", "standalone"] as const).map((form) => [
      form,
      ...names.map((name) => speedOf(figures[form].rounds[name] ?? [])),
    ]),
  );
  if (names.includes("burst")) printCores(targets, figures, "burst");
  printIdle(figures);
  console.log("\ncalls to account: mean time, and how many there were");
  for (const target of [targets.standalone, targets.processes]) await printCalls(target);
}

function speedOf(rounds: readonly Round[]): string {
  const of = (figureOf: (round: Round) => number) => medianOf(rounds.map(figureOf));
  const [p50, p99] = [of(({ p50Ms }) => p50Ms), of(({ p99Ms }) => p99Ms)];
  return `${of(({ perSecond }) => perSecond).toFixed(0)}/s; ${p50.toFixed(1)} / ${p99.toFixed(1)}`;
}

/** Cores and replicas of each process by requests a second. */
function printCores({ processes }: Targets, figures: Figures, name: WorkloadName): void {
  const rounds = figures.processes.rounds[name] ?? [];
  console.log(`\ncores (replicas), ${name}\n`);
  printMarkdown(
    ["", ...rates.map((rate) => `${rate.toLocaleString("en")}/s`)],
    Object.keys(processes.processes).map((process) => {
      const ms = medianOf(rounds.map(({ cpuMsOfEach }) => cpuMsOfEach[process] ?? 0));
      return [process, ...rates.map((rate) => replicasFor((rate * ms) / 1000))];
    }),
  );
}

function replicasFor(cores: number): string {
  return `${cores.toPrecision(2)} (${Math.max(leastReplicas, Math.ceil(cores / mostOfReplica))})`;
}

function printIdle({ standalone, processes }: Figures): void {
  if (processes.idle.length === 0) return;
  console.log("\nidle, a second\n");
  printMarkdown(
    ["process", "CPU ms", "wake-ups"],
    [...standalone.idle, ...processes.idle].map(({ name, cpuMs, wakeUps }) => [
      name,
      cpuMs.toFixed(1),
      wakeUps.toFixed(0),
    ]),
  );
}

function printMarkdown(header: readonly string[], lines: readonly (readonly string[])[]): void {
  for (const line of [header, header.map(() => "---"), ...lines]) console.log(`| ${line.join(" | ")} |`);
}

async function printCalls({ name, accountMetricsUrl = "" }: Target): Promise<void> {
  const text = await (await fetch(accountMetricsUrl, { signal: AbortSignal.timeout(10_000) })).text();
  const columns = calls.map((call) => {
    const count = sumOf(text, call, "count");
    return `${call} ${((sumOf(text, call, "sum") / count) * 1000).toFixed(2)} ms, ${count}`;
  });
  console.log(`  ${name.padEnd(12)}${columns.join("    ")}`);
}

/** Sums the series of a call's duration, in seconds or in calls. */
function sumOf(text: string, call: string, what: "sum" | "count"): number {
  const line = new RegExp(
    `^rpc_server_call_duration_seconds_${what}\\{[^}]*AccountInternalService/${call}"[^}]*\\} (\\S+)`,
    "gm",
  );
  return [...text.matchAll(line)].reduce((sum, [, value]) => sum + Number(value), 0);
}
