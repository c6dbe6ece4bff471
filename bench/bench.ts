/**
 * `npm run bench`: CPU, first byte and memory of the gateway in both its forms, beside a plain Node proxy, in one table.
 * `--quick` measures less; `--compare` fails when a ratio is worse by more than half than in baseline.json; `--save`
 * writes that file; `--json` prints everything that was measured; `--each` adds a line for each process. Words name
 * what to measure alone: burst, paced, one, image, idle. README.md says how to read it. Linux only.
 */
import { execFile } from "node:child_process";
import { cpus, totalmem } from "node:os";
import { parseArgs, promisify } from "node:util";
import { type Baseline, ratiosOf, readBaseline, worsened, writeBaseline } from "./table/baseline.ts";
import { printEach } from "./table/each.ts";
import { measureTable, type TableSize, type Targets } from "./table/measure.ts";
import { printed, rowsOf } from "./table/rows.ts";
import {
  patient,
  scriptsOf,
  startPlainProxy,
  startProcesses,
  startStandalone,
  withTargets,
} from "./targets.ts";
import { workloadNames } from "./workloads.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: "boolean", default: false },
    compare: { type: "boolean", default: false },
    save: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    each: { type: "boolean", default: false },
    rounds: { type: "string" },
  },
});

const whole: TableSize = {
  rounds: 5,
  requests: { burst: 1000, paced: 1000, one: 400, image: 300 },
  settleMs: 40_000,
  watchMs: 40_000,
};
const quick: TableSize = {
  rounds: 3,
  requests: { burst: 300, paced: 300, one: 150, image: 60 },
  settleMs: 10_000,
  watchMs: 15_000,
};
const chosen = values.quick ? quick : whole;
const size = { ...chosen, rounds: Number(values.rounds ?? chosen.rounds) };
const allParts = [...workloadNames, "idle"] as const;
const parts = new Set(allParts.filter((part) => positionals.length === 0 || positionals.includes(part)));

/** Progress goes where it does not stand in the way of the result. */
const note = (line: string) => console.error(line);

const launches = [startPlainProxy, startStandalone, startProcesses];
const ended = await withTargets(launches, patient, async ([plain, standalone, processes]) => {
  if (!plain || !standalone || !processes) throw new Error("a target is missing");
  return run({ plain, standalone, processes });
});
if (ended.length > 0) process.exitCode = 1;

/** Measures, prints and compares; returns what has worsened. */
async function run(targets: Targets): Promise<readonly string[]> {
  for (const line of targets.processes.leftOut) note(line);
  const figures = await measureTable(targets, parts, size, (part) => note(`measuring ${part} …`));
  const rows = rowsOf(figures);
  const about = await aboutRun(targets);
  if (values.save) await writeBaseline({ ...about, ratios: ratiosOf(rows) });
  const worse = values.compare ? worsened(rows, await readBaseline()) : [];
  if (values.json) {
    console.log(
      JSON.stringify({ ...about, leftOut: targets.processes.leftOut, rows, figures, worse }, undefined, 2),
    );
    return worse;
  }
  console.log(`${about.date}, ${about.commit}: ${about.machine}\n${about.ran}\n`);
  console.log(printed(rows));
  if (values.each) await printEach(targets, figures);
  for (const line of worse) console.log(`worse: ${line}`);
  if (values.compare && worse.length === 0)
    console.log("\nno ratio is worse by more than half than in baseline.json");
  return worse;
}

async function aboutRun({ processes, standalone }: Targets): Promise<Omit<Baseline, "ratios">> {
  const revision = promisify(execFile)("git", ["rev-parse", "--short", "HEAD"], { cwd: import.meta.dirname });
  const gibibytes = (totalmem() / 1024 ** 3).toFixed(0);
  const [scripts, alone] = [scriptsOf(processes), scriptsOf(standalone)];
  return {
    date: new Date().toISOString(),
    commit: await revision.then(({ stdout }) => stdout.trim()).catch(() => "unknown commit"),
    machine: `${cpus().length} × ${cpus()[0]?.model.trim()}, ${gibibytes} GiB, Node ${process.version}`,
    ran: `${values.quick ? "quick form" : "whole form"}, ${size.rounds} rounds, of ${[...scripts, ...alone].join(", ")}`,
  };
}
