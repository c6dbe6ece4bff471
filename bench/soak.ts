/**
 * Ten minutes (`--minutes`) at 70 % (`--share`) of the load that the gateway can just carry here, in each of its forms:
 * whether its memory stays flat. `node bench/soak.ts standalone --minutes 10`; a form is standalone or processes (both
 * unless given). The load is speech at once, paced speech and images, 6 : 3 : 1. What memory does in the first fifth of the time is
 * left out. Exits with 1 when it is not flat. Linux only.
 */
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { runAtRate, runLoad, slopeOf } from "./load.ts";
import { memoryMibOf, residentMibOf } from "./process-usage.ts";
import { Inspector, inspectable } from "./profile/inspector.ts";
import { formLaunches, patient, pidsOf, type Target, withTargets } from "./targets.ts";
import { workloads } from "./workloads.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { minutes: { type: "string", default: "10" }, share: { type: "string", default: "0.7" } },
});
const seconds = Number(values.minutes) * 60;
const warmUpSeconds = seconds / 5;
const { burst, paced, image } = workloads;
const mix = [burst, paced, burst, burst, paced, burst, image, burst, paced, burst];
const saturation = { seconds: 20, concurrency: 32 };
const samples = 40;
/** What memory may grow by, of what it is after the warm-up, and MiB where that is little. */
const flatShare = 0.05;
const flatMib = 8;

const kinds = ["rss", "pss", "once", "heap"] as const;

/** MiB, summed up over the processes; `once` counts pages of files once. */
type Sample = Readonly<Record<(typeof kinds)[number], number>> & { readonly minute: number };

for (const [form, launch] of Object.entries(formLaunches)) {
  if (positionals.length > 0 && !positionals.includes(form)) continue;
  await withTargets([launch], { ...patient, ...inspectable }, async ([target]) => {
    if (target !== undefined) await soak(target);
  });
}

async function soak(target: Target): Promise<void> {
  const exchanges = mix.map((workload) => workload.exchangeOf(target));
  await runLoad(exchanges, saturation);
  const most = await runLoad(exchanges, saturation);
  const perSecond = (most.firstByteMs.length / most.seconds) * Number(values.share);
  console.log(`${target.name}: ${values.minutes} minutes at ${perSecond.toFixed(0)} requests a second`);
  for (const line of target.leftOut) console.log(line);
  const inspectors = await Promise.all(Object.values(target.processes).map(Inspector.connect));
  const load = runAtRate(exchanges, { perSecond, seconds });
  const [{ firstByteMs }, watched] = await Promise.all([load, watch(target, inspectors)]);
  console.log(`  ${firstByteMs.length} requests, none of them failed`);
  for (const inspector of inspectors) inspector.close();
  judge(watched);
}

/** Samples after the warm-up; the live heap stands in the first and the last of them. */
async function watch(target: Target, inspectors: readonly Inspector[]): Promise<readonly Sample[]> {
  await delay(warmUpSeconds * 1000);
  const startedMs = performance.now();
  const heapOf = async (which: "liveHeapMib" | "heapMib") => {
    const heaps = await Promise.all(inspectors.map((inspector) => inspector[which]()));
    return heaps.reduce((sum, mib) => sum + mib, 0);
  };
  const sample = async (which: "liveHeapMib" | "heapMib"): Promise<Sample> => {
    const each = pidsOf(target).map(residentMibOf);
    const sum = (kind: "rss" | "pss") => each.reduce((total, memory) => total + memory[kind], 0);
    const minute = (performance.now() - startedMs) / 60_000;
    return {
      minute,
      rss: sum("rss"),
      pss: sum("pss"),
      once: memoryMibOf(pidsOf(target)),
      heap: await heapOf(which),
    };
  };
  const all = [await sample("liveHeapMib")];
  print(all[0]);
  const everyMs = ((seconds - warmUpSeconds) * 1000 * 0.95) / samples;
  for (let index = 1; index <= samples; index += 1) {
    await delay(everyMs);
    all.push(await sample(index === samples ? "liveHeapMib" : "heapMib"));
    if (index % 4 === 0) print(all.at(-1));
  }
  return all;
}

function print(sample: Sample | undefined): void {
  if (sample === undefined) return;
  const figures = kinds.map((kind) => `${kind} ${sample[kind].toFixed(0).padStart(5)}`);
  console.log(`  minute ${sample.minute.toFixed(1).padStart(4)}  ${figures.join("  ")} MiB`);
}

/** The first sample follows a collection: what was resident comes back to its level soon after. */
function judge(all: readonly Sample[]): void {
  const [first, last] = [all[0], all.at(-1)];
  if (first === undefined || last === undefined) throw new Error("there are no samples");
  const settled = all.slice(Math.ceil(samples / 5));
  const minutes = last.minute - first.minute;
  const rises = kinds.map((kind) => {
    if (kind === "heap") return { kind: "live heap", from: first.heap, rise: last.heap - first.heap };
    const points = settled.map((sample) => ({ x: sample.minute, y: sample[kind] }));
    return { kind, from: settled[0]?.[kind] ?? 0, rise: slopeOf(points) * minutes };
  });
  for (const { kind, from, rise } of rises) {
    const isFlat = rise <= Math.max(flatMib, from * flatShare);
    const slope = (rise / minutes).toFixed(2);
    console.log(`  ${kind}: ${from.toFixed(0)} MiB, ${slope} MiB a minute: ${isFlat ? "flat" : "it grows"}`);
    if (!isFlat) process.exitCode = 1;
  }
}
