/**
 * Where the processor time of every process of ours goes under a load, by package and by room of our own code; with
 * `--heap` what they allocate. `node bench/profile.ts burst standalone --seconds 20 --top 20`; a load is burst, paced,
 * one or image (burst unless given), a form standalone or processes (both unless given).
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { runLoad } from "./load.ts";
import { cpuMsOf } from "./process-usage.ts";
import { Attribution, type Sum } from "./profile/attribution.ts";
import { type Cost, Inspector, inspectable } from "./profile/inspector.ts";
import { formLaunches, patient, scriptsOf, type Target, withTargets } from "./targets.ts";
import { type WorkloadName, workloadNames, workloads } from "./workloads.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    heap: { type: "boolean", default: false },
    seconds: { type: "string", default: "20" },
    "warm-up": { type: "string", default: "10" },
    /** Owners and functions that are printed of each process. */
    top: { type: "string", default: "20" },
  },
});
const seconds = Number(values.seconds);
const top = Number(values.top);
const forms = Object.keys(formLaunches);
const loads = workloadNames.filter((name) => positionals.includes(name));
const attribution = new Attribution(fileURLToPath(new URL("..", import.meta.url)));

for (const [form, launch] of Object.entries(formLaunches)) {
  if (!positionals.includes(form) && positionals.some((word) => forms.includes(word))) continue;
  await withTargets([launch], { ...patient, ...inspectable }, async ([target]) => {
    if (target === undefined) return;
    console.log([`${target.name} (${scriptsOf(target).join(", ")})`, ...target.leftOut].join("\n"));
    for (const name of loads.length === 0 ? (["burst"] as const) : loads) await profile(target, name);
  });
}

async function profile(target: Target, name: WorkloadName): Promise<void> {
  const workload = workloads[name];
  const { concurrency } = workload;
  const exchanges = [workload.exchangeOf(target)];
  await runLoad(exchanges, { concurrency, seconds: Number(values["warm-up"]) });
  const watched = await Promise.all(
    Object.entries(target.processes).map(async ([process, child]) => {
      return { process, pid: child.pid, inspector: await Inspector.connect(child) };
    }),
  );
  const cpuMs = () => watched.map(({ pid }) => cpuMsOf([pid]));
  await Promise.all(
    watched.map(({ inspector }) =>
      values.heap ? inspector.startHeapProfile() : inspector.startCpuProfile(),
    ),
  );
  const before = cpuMs();
  const { firstByteMs } = await runLoad(exchanges, { concurrency, seconds });
  const usedMs = cpuMs().map((ms, index) => ms - (before[index] ?? 0));
  const costs = await Promise.all(
    watched.map(({ inspector }) => (values.heap ? inspector.stopHeapProfile() : inspector.stopCpuProfile())),
  );
  for (const { inspector } of watched) inspector.close();
  const requests = firstByteMs.length;
  console.log(`\n=== ${target.name}, ${workload.title}, ${concurrency} in flight: ${requests} requests`);
  watched.forEach(({ process }, index) => {
    print(process, costs[index] ?? [], usedMs[index] ?? 0, requests);
  });
  if (watched.length > 1)
    print(
      "all of them",
      costs.flat(),
      usedMs.reduce((sum, ms) => sum + ms, 0),
      requests,
    );
}

function print(process: string, costs: readonly Cost[], usedMs: number, requests: number): void {
  const owners = attribution.byOwner(costs);
  const whole = owners.reduce((sum, { self }) => sum + self, 0);
  const each = (self: number) => (values.heap ? self / requests / 1024 : self / requests);
  const unit = values.heap ? "KiB allocated" : "ms sampled on the main thread";
  const used = `${(usedMs / requests).toFixed(2)} ms CPU with all threads`;
  console.log(`\n${process}: ${each(whole).toFixed(2)} ${unit} a request, ${used}`);
  const line = ({ name, self }: Sum) =>
    console.log(
      `${each(self).toFixed(3).padStart(10)}${((self / whole) * 100).toFixed(1).padStart(7)} %  ${name}`,
    );
  owners.slice(0, top).forEach(line);
  console.log("    functions");
  attribution.byFunction(costs).slice(0, top).forEach(line);
}
