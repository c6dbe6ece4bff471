import * as conventions from "@opentelemetry/semantic-conventions/incubating";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { kafkaTimeoutMs } from "../support/kafka/kafka-stage.ts";
import {
  type FlowStack,
  flowModel,
  type SpeakOptions,
  speak,
  speakDirectly,
  startFlowStack,
} from "../support/processes/speech-flow.ts";
import { openAiEnv } from "../support/processes/standalone.ts";
import {
  newTraceparent,
  pathTo,
  placeOf,
  startTraceReceiver,
  type TraceReceiver,
} from "../support/trace-receiver.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type OpenAiUpstream, startOpenAiUpstream } from "../upstreams/openai/openai.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const topic = "media.generation-events.v1";
const synthesize = "media.speech.v1.SpeechService/Synthesize";
const internal = "media.account.v1.AccountInternalService";
const root = "gateway: POST /api/v1/audio/speech";
const attempt = "speech: generate_content openai/tts-1";
const inSpeech = [root, `gateway: ${synthesize}`, `speech: ${synthesize}`];

let collector: TraceReceiver;
let upstream: OpenAiUpstream;
let broker: KafkaBroker | undefined;
let flow: FlowStack;

beforeAll(async () => {
  if (kafkaUnavailable() === undefined) broker = await startKafkaBroker();
  collector = await startTraceReceiver();
  upstream = await startOpenAiUpstream();
  flow = await startFlowStack({
    env: {
      ...openAiEnv(upstream),
      ...collector.env,
      SPEECH_FIRST_BYTE_TIMEOUT_MS: "2000",
      LOG_LEVEL: "debug",
      METRICS_PORT: "0",
    },
    ...(broker === undefined ? {} : { kafkaBrokers: broker.brokers.join(",") }),
  });
});

afterAll(async () => {
  await flow?.[Symbol.asyncDispose]();
  await upstream?.close();
  await collector?.[Symbol.asyncDispose]();
  await broker?.stop();
});

/** Asks with a traceparent of its own. */
async function askTraced(options: SpeakOptions = {}) {
  const caller = newTraceparent("00");
  const headers = { ...options.headers, traceparent: caller.header };
  const answer = await speak(flow.stack, "Hello.", { ...options, headers });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return { ...caller, answer, bytes, requestId: answer.headers.get("x-request-id") ?? "" };
}

describe("a request's trace", () => {
  test("goes from the gateway through every process, the upstream and Kafka to all consumers", async (context) => {
    needKafka(context);
    const { traceId, spanId, requestId } = await askTraced();
    const consumers = ["usage", "account", "destination"].map((name) => `${name}: process ${topic}`);
    const trace = await collector.trace(traceId, [root, attempt, ...consumers]);
    const paths = trace.map((span) => pathTo(span, trace));
    expect(trace.find((span) => placeOf(span) === root)?.parentSpanId).toBe(spanId);
    for (const call of ["Reserve", "Settle"]) {
      const waiting = call === "Reserve" ? "speech: hold credit" : "speech: settle";
      const name = `${internal}/${call}`;
      expect(paths).toContainEqual([...inSpeech, waiting, `speech: ${name}`, `account: ${name}`]);
    }
    expect(paths).toContainEqual([...inSpeech, attempt]);
    for (const consumer of consumers) {
      expect(paths).toContainEqual([...inSpeech, `speech: send ${topic}`, consumer]);
    }
    expect(trace.filter(({ statusCode }) => statusCode !== 0)).toEqual([]);
    const entry = trace.find((span) => placeOf(span) === root);
    expect(entry?.attributes).toMatchObject({
      "http.request.method": "POST",
      "http.route": "/api/v1/audio/speech",
      "http.response.status_code": 200n,
      "media.request_id": requestId,
      "media.generation_id": expect.stringMatching(/^gen-tts-/),
    });
    expect(trace.find((span) => placeOf(span) === attempt)?.attributes).toMatchObject({
      "gen_ai.operation.name": "generate_content",
      "gen_ai.output.type": "speech",
      "gen_ai.provider.name": "openai",
      "gen_ai.request.model": "openai/tts-1",
      "media.attempt": 1n,
      "media.byok": false,
    });
    const processed = trace.find((span) => placeOf(span) === consumers[0]);
    expect(processed).toMatchObject({
      kind: 5,
      attributes: {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.consumer.group.name": expect.any(String),
      },
    });
  });

  test("is not told to the vendor", async () => {
    await askTraced();
    expect(upstream.requests.at(-1)?.headers).not.toHaveProperty("traceparent");
    expect(upstream.requests.at(-1)?.headers).not.toHaveProperty("tracestate");
  });

  test("tells of a failed attempt and of what came of the request", async () => {
    upstream.next({ kind: "error", status: 500 });
    const { traceId, answer } = await askTraced();
    expect(answer.status).toBe(502);
    const trace = await collector.trace(traceId, [root, attempt]);
    const failed = { statusCode: 2, attributes: { "error.type": "provider_failed" } };
    for (const place of [root, ...inSpeech, attempt]) {
      expect(
        trace.find((span) => placeOf(span) === place),
        place,
      ).toMatchObject(failed);
    }
    expect(trace.find((span) => placeOf(span) === attempt)?.attributes).toMatchObject({
      "http.response.status_code": 500n,
    });
    // Whose message could hold an upstream's words.
    expect(trace.filter(({ statusMessage, events }) => statusMessage !== "" || events.length > 0)).toEqual(
      [],
    );
  });

  test("tells of a refusal without calling it an error", async () => {
    const { traceId, answer } = await askTraced({ key: flow.stack.managementKey });
    expect(answer.status).toBe(401);
    const trace = await collector.trace(traceId, [root]);
    expect(trace.find((span) => placeOf(span) === root)).toMatchObject({
      statusCode: 0,
      attributes: { "error.type": "inference_key_required", "http.response.status_code": 401n },
    });
  });

  test("ends when its caller leaves", async () => {
    const leaving = new AbortController();
    upstream.next({ kind: "audio", stallAfterBytes: 8192 });
    const caller = newTraceparent();
    const headers = { traceparent: caller.header };
    const answer = await speak(flow.stack, "Hello.", { headers, signal: leaving.signal });
    const reader = answer.body?.getReader();
    await reader?.read();
    leaving.abort();
    const trace = await collector.trace(caller.traceId, [root, ...inSpeech, attempt]);
    const spanOf = (place: string) => trace.find((span) => placeOf(span) === place);
    const cancelled = { statusCode: 0, attributes: { "error.type": "cancelled" } };
    for (const place of [root, ...inSpeech]) expect(spanOf(place), place).toMatchObject(cancelled);
    // Its audio was usable by then, so the attempt came to what was asked for.
    expect(spanOf(attempt)).toMatchObject({ statusCode: 0 });
    expect(spanOf(attempt)?.attributes).not.toHaveProperty("error.type");
  });

  test("of a caller who calls a service itself begins there", async () => {
    const seen = collector.spans().length;
    await speakDirectly(flow.stack, "Hello.", `Bearer ${flow.stack.inferenceKey}`);
    await waitUntil(
      () =>
        collector
          .spans()
          .slice(seen)
          .find((span) => placeOf(span) === `speech: ${synthesize}` && span.parentSpanId === ""),
      { timeoutMs: 20_000 },
    );
  });
});

test("log lines of a request name its trace in every process", async () => {
  upstream.next({ kind: "error", status: 500 });
  const { traceId, requestId } = await askTraced({ fields: { model: flowModel } });
  const linesOf = (name: string) =>
    flow.stack.processes
      .child(name)
      .lines.filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line.request_id === requestId);
  const lines = await waitUntil(() => {
    const found = [linesOf("gateway"), linesOf("speech")];
    return found.every(({ length }) => length > 0) ? found.flat() : undefined;
  });
  const trace = await collector.trace(traceId, [root, `speech: ${synthesize}`]);
  const spanIds = new Set(trace.map((span) => span.spanId));
  for (const line of lines) {
    expect(line).toMatchObject({ trace_id: traceId });
    expect(spanIds).toContain(line.span_id);
  }
});

test("spans say what they say under names of the semantic conventions, or our own", () => {
  const known = new Set<string>(Object.values(conventions).filter((value) => typeof value === "string"));
  const names = new Set(collector.spans().flatMap(({ attributes }) => Object.keys(attributes)));
  expect([...names].filter((name) => !known.has(name) && !name.startsWith("media."))).toEqual([]);
  expect(names).toContain("http.route");
  expect(names).toContain("rpc.method");
});

test("a process that ends sends what it has", async () => {
  const { traceId } = await askTraced();
  expect(await flow.stack.processes.stop("gateway")).toBe(0);
  const there = collector.spans().filter((span) => span.traceId === traceId);
  expect(there.map(placeOf)).toContain(root);
  await flow.stack.processes.restart("gateway");
});
