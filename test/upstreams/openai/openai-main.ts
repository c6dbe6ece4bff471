/**
 * The OpenAI stand-in as a process of its own, for benchmarks and tests across processes; no log is kept.
 * `node test/upstreams/openai/openai-main.ts --port 9101 --audio 81920 --chunk 4096 --interval 10`; prints its base URL.
 */
import { parseArgs } from "node:util";
import { startOpenAiUpstream } from "./openai.ts";
import type { AudioBehaviour } from "./openai-behaviour.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "api-key": { type: "string", default: "test-key" },
    audio: { type: "string", default: "81920" },
    chunk: { type: "string", default: "4096" },
    interval: { type: "string" },
  },
});
const otherwise: AudioBehaviour = {
  kind: "audio",
  totalBytes: Number(values.audio),
  chunkBytes: Number(values.chunk),
  ...(values.interval !== undefined && { intervalMs: Number(values.interval) }),
};
const upstream = await startOpenAiUpstream({
  port: Number(values.port),
  apiKey: values["api-key"],
  log: false,
  otherwise,
});
process.stdout.write(`${upstream.baseUrl}\n`);
process.once("SIGTERM", () => void upstream.close());
