/**
 * Speech through the openai adapter and its stand-in upstream, beside a plain Node proxy in the same run: CPU a
 * request, requests a second, time to first byte, peak memory. `npm run bench`; README.md says how to read it.
 */
import { parseArgs } from "node:util";
import { type Load, quantileOf, runLoad } from "./load.ts";
import { cpuMsOf, peakMemoryMib } from "./process-usage.ts";
import { startPlainProxy, startProcesses, startStandalone, startUpstream, type Target } from "./targets.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    requests: { type: "string", default: "1000" },
    concurrency: { type: "string", default: "8" },
  },
});
const rounds = Number(values.rounds);
const requests = Number(values.requests);
const concurrency = Number(values.concurrency);

/** Kinds of answers; `paced` has more in flight, since each takes 200 ms by design. */
const workloads = [
  { name: "burst", detail: "20 × 4 KiB at once", marker: "audio=81920 chunk=4096", concurrency },
  { name: "one at a time", detail: "20 × 4 KiB at once", marker: "audio=81920 chunk=4096", concurrency: 1 },
  {
    name: "paced",
    detail: "20 × 4 KiB, 10 ms apart",
    marker: "audio=81920 chunk=4096 interval=10",
    concurrency: concurrency * 4,
  },
] as const;
const answerBytes = 81_920;

interface Figures {
  readonly cpuMs: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const upstream = await startUpstream();
const targets = [
  await startPlainProxy(upstream.baseUrl),
  await startStandalone(upstream.baseUrl),
  await startProcesses(upstream.baseUrl),
];
try {
  for (const workload of workloads) {
    const figures = new Map<Target, Figures[]>(targets.map((target) => [target, []]));
    for (const target of targets) await measure(target, workload, Math.ceil(requests / 4));
    for (let round = 0; round < rounds; round++) {
      for (const target of targets) figures.get(target)?.push(await measure(target, workload, requests));
    }
    print(`${workload.name}: ${workload.detail}, ${workload.concurrency} in flight`, figures);
  }
  console.log("peak memory, MiB:");
  for (const target of targets)
    console.log(`  ${target.name.padEnd(14)}${peakMemoryMib(target.pids).toFixed(0)}`);
} finally {
  for (const target of targets) await target.stop();
  await upstream.stop();
}

async function measure(
  target: Target,
  workload: (typeof workloads)[number],
  count: number,
): Promise<Figures> {
  const load: Load = {
    url: target.url,
    apiKey: target.apiKey,
    body: JSON.stringify({
      model: target.name === "plain proxy" ? "tts-1" : "openai/tts-1",
      input: `Hello. [[${workload.marker}]]`,
      voice: "alloy",
      response_format: "pcm",
    }),
    expectedBytes: answerBytes,
    requests: count,
    concurrency: workload.concurrency,
  };
  const cpuBeforeMs = cpuMsOf(target.pids);
  const { seconds, firstByteMs } = await runLoad(load);
  return {
    cpuMs: (cpuMsOf(target.pids) - cpuBeforeMs) / count,
    perSecond: count / seconds,
    p50Ms: quantileOf(firstByteMs, 0.5),
    p99Ms: quantileOf(firstByteMs, 0.99),
  };
}

function print(name: string, figures: ReadonlyMap<Target, readonly Figures[]>): void {
  console.log(`${name} (${rounds} rounds of ${requests} requests; medians, [least–most] CPU)`);
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
  }
}

function median(samples: readonly number[]): number {
  return quantileOf(
    [...samples].sort((a, b) => a - b),
    0.5,
  );
}
