/**
 * What counting costs a speech request: everything that the gateway, speech and account record for one, without the
 * request itself, and what reading the metrics costs. `node bench/metrics.ts`
 */
import { create } from "@bufbuild/protobuf";
import { measureRequests } from "../gateway/http/telemetry/request-metrics.ts";
import {
  Api,
  AttemptSchema,
  GenerationEventSchema,
  Outcome,
} from "../gen/media/event/v1/generation_event_pb.ts";
import { measureGenerations } from "../lib/generation/generation-metrics.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { measureCalls } from "../lib/telemetry/metrics-calls.ts";
import { openMetrics } from "../lib/telemetry/metrics-process.ts";

const requests = 200_000;
const rounds = 5;
const scrapes = 200;
const rpcs = ["media.speech.v1.SpeechService/Synthesize", "Reserve", "Settle"];

const metrics = openMetrics(silentLog);
const requestMetrics = measureRequests(metrics);
const callEnded = measureCalls(metrics);
const generationEnded = measureGenerations(metrics);
const attempt = create(AttemptSchema, {
  providerSlug: "sample",
  endpointId: "83739056-1a39-4557-b9bc-70e58837ba46",
  outcome: Outcome.SUCCEEDED,
  firstByteMs: 120n,
});
const event = create(GenerationEventSchema, {
  api: Api.SPEECH,
  outcome: Outcome.SUCCEEDED,
  costNanoUsd: 11_000n,
  attempts: [attempt],
});
const exchange = {
  request: { method: "POST" },
  response: { headersSent: true, statusCode: 200, writableFinished: true },
  route: "/api/v1/audio/speech",
  reason: "",
  startedMs: 0,
  firstByteMs: 130,
} as unknown as Parameters<NonNullable<typeof requestMetrics>["ended"]>[0];

function record(): void {
  requestMetrics?.began();
  for (const rpc of rpcs) callEnded?.({ rpc, code: undefined, durationMs: 12 });
  generationEnded(event);
  requestMetrics?.ended(exchange, 900);
}

/** Processor time of this process since then, microseconds. */
function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Of several rounds the one that was disturbed the least, microseconds a request. */
function costOfRequest(): number {
  const figures = Array.from({ length: rounds }, () => {
    const before = process.cpuUsage();
    for (let request = 0; request < requests; request++) record();
    return cpuSince(before) / requests;
  });
  return Math.min(...figures);
}

async function costOfScrape() {
  const before = process.cpuUsage();
  let text = "";
  for (let scrape = 0; scrape < scrapes; scrape++) text = await metrics.scrape();
  return { us: cpuSince(before) / scrapes, bytes: text.length };
}

console.log(`recording one speech request: ${costOfRequest().toFixed(2)} µs of processor time`);
const { us, bytes } = await costOfScrape();
console.log(`one scrape of ${bytes} bytes: ${(us / 1000).toFixed(2)} ms of processor time`);
process.exit(0);
