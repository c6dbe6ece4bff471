import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  bytesOf,
  openAiEnv,
  speak,
  startTestStandalone,
  type TestStandalone,
} from "../support/processes/standalone.ts";
import {
  newTraceparent,
  pathTo,
  placeOf,
  startTraceReceiver,
  type TraceReceiver,
} from "../support/trace-receiver.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const topic = "media.generation-events.v1";
const synthesize = "standalone: media.speech.v1.SpeechService/Synthesize";
const root = "standalone: POST /api/v1/audio/speech";
const consumer = `standalone: process ${topic}`;
const body = { model: "openai/tts-1", voice: "alloy", input: "Hello.", response_format: "pcm" };

let collector: TraceReceiver;
let upstream: OpenAiUpstream;

beforeAll(async () => {
  collector = await startTraceReceiver();
  upstream = await startOpenAiUpstream();
});

afterAll(async () => {
  await upstream?.close();
  await collector?.[Symbol.asyncDispose]();
});

function start(env: Record<string, string> = {}): Promise<TestStandalone> {
  return startTestStandalone({ ...openAiEnv(upstream), ...collector.env, METRICS_PORT: "0", ...env });
}

async function askTraced(standalone: TestStandalone): Promise<string> {
  const { header, traceId } = newTraceparent();
  const answer = await speak(standalone, standalone.inferenceKey, body, { headers: { traceparent: header } });
  expect(answer.status).toBe(200);
  expect(await bytesOf(answer)).not.toHaveLength(0);
  return traceId;
}

describe("standalone", () => {
  test("traces a request through its own bus to all consumers", async () => {
    const standalone = await start();
    const traceId = await askTraced(standalone);
    const trace = await collector.trace(traceId, [root, consumer, "standalone: settle"]);
    const groups = trace
      .filter((span) => placeOf(span) === consumer)
      .map(({ attributes }) => [attributes["messaging.system"], attributes["messaging.consumer.group.name"]]);
    await expect
      .poll(
        () => collector.spans().filter((span) => span.traceId === traceId && placeOf(span) === consumer),
        {
          timeout: 20_000,
        },
      )
      .toHaveLength(3);
    expect(new Set(groups.map(([system]) => system))).toEqual(new Set(["postgresql"]));
    const span = trace.find((candidate) => placeOf(candidate) === consumer);
    expect(span && pathTo(span, trace)).toEqual([
      root,
      synthesize,
      synthesize,
      `standalone: send ${topic}`,
      consumer,
    ]);
    await standalone.close();
  });

  test("records no trace without a collector, or that was not drawn", async () => {
    for (const env of [{ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, { OTEL_TRACES_SAMPLER_ARG: "0.000000001" }]) {
      const standalone = await start(env);
      const traceId = await askTraced(standalone);
      await standalone.close();
      expect(standalone.child.lines.filter((line) => line.includes("trace_id"))).toEqual([]);
      expect(collector.spans().filter((span) => span.traceId === traceId)).toEqual([]);
    }
  });

  test("is slowed by a collector that hangs in no request, and ends well", async () => {
    const standalone = await start();
    collector.receiver.next(...Array.from({ length: 200 }, () => ({ kind: "hang" }) as const));
    const before = collector.receiver.requests.length;
    while (collector.receiver.requests.length === before) await askTraced(standalone);
    const hanging = collector.receiver.requests[before];
    for (let count = 0; count < 20; count += 1) await askTraced(standalone);
    expect(hanging?.fate).toBe("open");
    await standalone.close();
  });
});
