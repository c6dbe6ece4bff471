/**
 * Speech through the openai adapter and its stand-in upstream, beside a plain Node proxy in the same run: CPU a
 * request, requests a second, time to first byte, peak memory. README.md says how to read it.
 */
import { parseArgs } from "node:util";
import { compare, printPeakMemory, type Workload } from "./compare.ts";
import { printMoneyLatency } from "./money-latency.ts";
import { startPlainProxy, startProcesses, startStandalone, startUpstream, type Target } from "./targets.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    requests: { type: "string", default: "1000" },
    concurrency: { type: "string", default: "8" },
  },
});
const size = { rounds: Number(values.rounds), requests: Number(values.requests) };
const concurrency = Number(values.concurrency);
const answerBytes = 81_920;

/** `paced` has more in flight, since each of its requests takes 200 ms by design. */
const workloads: readonly Workload[] = [
  workload("burst: 20 × 4 KiB at once", "audio=81920 chunk=4096", concurrency),
  workload("one at a time: 20 × 4 KiB at once", "audio=81920 chunk=4096", 1),
  workload("paced: 20 × 4 KiB, 10 ms apart", "audio=81920 chunk=4096 interval=10", concurrency * 4),
];

function workload(name: string, marker: string, inFlight: number): Workload {
  return {
    name,
    concurrency: inFlight,
    load: ({ baseUrl, isProxy }: Target) => ({
      url: `${baseUrl}/audio/speech`,
      body: JSON.stringify({
        model: isProxy ? "tts-1" : "openai/tts-1",
        input: `Hello. [[${marker}]]`,
        voice: "alloy",
        response_format: "pcm",
      }),
      isWhole: (bytes) => bytes === answerBytes,
    }),
  };
}

const upstream = await startUpstream();
const targets = [
  await startPlainProxy(upstream.baseUrl),
  await startStandalone(upstream.baseUrl),
  await startProcesses(upstream.baseUrl),
];
try {
  let requests = 0;
  for (const each of workloads) requests += await compare(targets, each, size);
  await printMoneyLatency(targets, requests);
  printPeakMemory(targets);
} finally {
  for (const target of targets) await target.stop();
  await upstream.stop();
}
