/**
 * Images of 1 MiB through the openai adapter and its stand-in upstream, beside a plain Node proxy in the same run: CPU
 * an image, images a second, peak memory. README.md says how to read it.
 */
import { parseArgs } from "node:util";
import { compare, printPeakMemory } from "./compare.ts";
import { startPlainProxy, startProcesses, startStandalone, startUpstream } from "./targets.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    requests: { type: "string", default: "300" },
    concurrency: { type: "string", default: "8" },
  },
});
const imageBytes = 1_048_576;
/** What base64 makes of them; the rest of an answer is its frame. */
const encodedBytes = Math.ceil(imageBytes / 3) * 4;

const upstream = await startUpstream();
const targets = [
  await startPlainProxy(upstream.baseUrl),
  await startStandalone(upstream.baseUrl),
  await startProcesses(upstream.baseUrl),
];
try {
  const workload = {
    name: "1 MiB images",
    concurrency: Number(values.concurrency),
    load: ({ baseUrl, isProxy }: (typeof targets)[number]) => ({
      url: isProxy ? `${baseUrl}/images/generations` : `${baseUrl}/images`,
      body: JSON.stringify({
        model: isProxy ? "gpt-image-1.5" : "openai/gpt-image-1.5",
        prompt: `A square of noise. [[image=${imageBytes}]]`,
      }),
      isWhole: (bytes: number) => bytes >= encodedBytes && bytes < encodedBytes + 2048,
    }),
  };
  await compare(targets, workload, { rounds: Number(values.rounds), requests: Number(values.requests) });
  printPeakMemory(targets);
} finally {
  for (const target of targets) await target.stop();
  await upstream.stop();
}
