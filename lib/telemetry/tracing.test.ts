import { afterEach, describe, expect, test } from "vitest";
import { newTraceparent, startTraceReceiver, type TraceReceiver } from "../../test/support/trace-receiver.ts";
import { waitUntil } from "../../test/support/wait-until.ts";
import { processSpec, readConfig } from "../runtime/config.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { silentSpan, silentTracer } from "../runtime/span.ts";
import type { Tracing } from "./trace-export.ts";
import { openTracing } from "./tracing.ts";

const open: AsyncDisposable[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((resource) => resource[Symbol.asyncDispose]()));
});

interface Scene {
  readonly collector: TraceReceiver;
  readonly tracing: Tracing;
  readonly lines: string[];
}

async function scene(env: Record<string, string> = {}): Promise<Scene> {
  const collector = await startTraceReceiver();
  open.push(collector);
  const lines: string[] = [];
  const log = createLog({
    name: "sample",
    level: "trace",
    destination: { write: (line) => void lines.push(line) },
  });
  const tracing = await openTracing(readConfig(processSpec, { ...collector.env, ...env }), "sample", log);
  return { collector, tracing, lines };
}

describe("traces", () => {
  test("are off without a collector, and with a share of nothing", async () => {
    const config = readConfig(processSpec, {});
    expect((await openTracing(config, "sample", silentLog)).tracer).toBe(silentTracer);
    const none = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_TRACES_SAMPLER_ARG: "0" };
    expect((await openTracing(readConfig(processSpec, none), "sample", silentLog)).tracer).toBe(silentTracer);
    expect(silentTracer.begin("a", "server", newTraceparent().header)).toBe(silentSpan);
    expect(silentSpan.child("b", "client")).toBe(silentSpan);
  });

  test.for([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere"],
    ["OTEL_TRACES_SAMPLER_ARG", "2"],
    ["OTEL_TRACES_SAMPLER_ARG", "half"],
    ["OTEL_TRACES_SAMPLER_ARG", "-0.1"],
  ])("are not opened with %s=%s", ([name = "", value = ""]) => {
    expect(() => readConfig(processSpec, { [name]: value })).toThrow(name);
  });

  test("reach the collector whole when the process ends", async () => {
    const { collector, tracing } = await scene({ OTEL_RESOURCE_ATTRIBUTES: "ignored=here" });
    const root = tracing.tracer.begin("root", "server", undefined);
    const startedAtMs = Date.now() - 1000;
    const child = root.child("child", "client", startedAtMs);
    child.set({ "media.attempt": 1, "media.byok": false, "error.type": undefined });
    child.end("timed_out");
    root.rename("renamed");
    root.end();
    root.end("again");
    root.set({ late: 1 });
    await tracing.close();
    const [first, second] = collector.spans();
    expect(collector.spans()).toHaveLength(2);
    expect(first).toMatchObject({ name: "child", kind: 3, statusCode: 2, scope: "media-gateway" });
    expect(first?.attributes).toEqual({
      "media.attempt": 1n,
      "media.byok": false,
      "error.type": "timed_out",
    });
    expect(first?.startNs).toBe(BigInt(startedAtMs) * 1_000_000n);
    expect(second).toMatchObject({
      name: "renamed",
      kind: 2,
      statusCode: 0,
      parentSpanId: "",
      attributes: {},
    });
    expect(first).toMatchObject({ traceId: second?.traceId, parentSpanId: second?.spanId });
    expect(second?.resource).toMatchObject({
      "service.name": "sample",
      "service.namespace": "media-gateway",
      "service.instance.id": expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
  });

  test("carry the configured name and headers", async () => {
    const { collector, tracing } = await scene({
      OTEL_SERVICE_NAME: "edge",
      OTEL_EXPORTER_OTLP_HEADERS: "x-token=a%20b,x-other=c",
    });
    tracing.tracer.begin("root", "server", undefined).end();
    await tracing.close();
    expect(collector.spans()[0]?.resource["service.name"]).toBe("edge");
    expect(collector.receiver.requests[0]?.headers).toMatchObject({ "x-token": "a b", "x-other": "c" });
  });

  test("hold few attributes of bounded length", async () => {
    const { collector, tracing } = await scene();
    const span = tracing.tracer.begin("root", "server", undefined);
    span.set(
      Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`media.a${index}`, "x".repeat(5000)])),
    );
    span.end();
    await tracing.close();
    const attributes = Object.values(collector.spans()[0]?.attributes ?? {});
    expect(attributes).toHaveLength(32);
    expect(new Set(attributes)).toEqual(new Set(["x".repeat(256)]));
  });
});

describe("a caller's traceparent", () => {
  test.for(["00", "01"])("becomes the parent, whatever its flags %s ask for", async (flags) => {
    const { tracing, collector } = await scene();
    const caller = newTraceparent(flags);
    tracing.tracer.begin("root", "server", caller.header).end();
    await tracing.close();
    expect(collector.spans()).toMatchObject([{ traceId: caller.traceId, parentSpanId: caller.spanId }]);
  });

  test("does not decide whether a trace is recorded: not by its flag, and not by its trace id", async () => {
    const { tracing } = await scene({ OTEL_TRACES_SAMPLER_ARG: "0.01" });
    // The ids that samplers by trace id take first.
    const header = `00-${"0".repeat(31)}1-${"1".repeat(16)}-01`;
    const spans = Array.from({ length: 5000 }, () => tracing.tracer.begin("root", "server", header));
    const share = spans.filter(({ recording }) => recording).length / spans.length;
    expect(share).toBeGreaterThan(0);
    expect(share).toBeLessThan(0.03);
  });

  test("decides between processes of ours", async () => {
    const { tracing } = await scene({ OTEL_TRACES_SAMPLER_ARG: "0.000001" });
    const { tracer } = tracing;
    expect(tracer.join("a", "server", newTraceparent("01").header).recording).toBe(true);
    expect(tracer.join("a", "server", newTraceparent("00").header)).toBe(silentSpan);
    expect(tracer.join("a", "server", undefined)).toBe(silentSpan);
  });

  test("that is handed on names the span", async () => {
    const { tracing } = await scene();
    const span = tracing.tracer.begin("root", "server", undefined);
    const { traceparent, logFields } = span;
    expect(traceparent).toBe(`00-${logFields?.trace_id}-${logFields?.span_id}-01`);
    expect(tracing.tracer.join("a", "server", traceparent).logFields?.trace_id).toBe(logFields?.trace_id);
  });

  const ids = `${"a".repeat(32)}-${"b".repeat(16)}`;
  test.for([
    "",
    "x",
    `00-${ids}`,
    `00-${ids}-01-more`,
    `ff-${ids}-01`,
    `00-${ids.toUpperCase()}-01`,
    `00-${"0".repeat(32)}-${"b".repeat(16)}-01`,
    `00-${"a".repeat(32)}-${"0".repeat(16)}-01`,
  ])("that is malformed counts as none: %s", async (header) => {
    const { tracing } = await scene();
    expect(tracing.tracer.join("a", "server", header)).toBe(silentSpan);
  });

  test("of a later version is read as far as it is known", async () => {
    const { tracing } = await scene();
    const { logFields } = tracing.tracer.join("a", "server", `01-${ids}-03-more`);
    expect(logFields?.trace_id).toBe("a".repeat(32));
  });
});

describe("a collector", () => {
  test("that hangs holds up nothing but the end, and that not for long", async () => {
    const { collector, tracing } = await scene();
    collector.receiver.next(...Array.from({ length: 20 }, () => ({ kind: "hang" }) as const));
    for (let index = 0; index < 20_000; index += 1) tracing.tracer.begin("root", "server", undefined).end();
    await collector.receiver.received(1);
    await tracing.close();
    // It hangs to this moment, and what waited for it was bounded.
    expect(new Set(collector.receiver.requests.map((request) => request.fate))).toEqual(new Set(["open"]));
    expect(collector.spans().length).toBeLessThan(6000);
    expect(collector.spans().length).toBeGreaterThan(512);
  });

  test("that is away is reported once in the log, with spans that get lost", async () => {
    const { collector, tracing, lines } = await scene();
    collector.receiver.next({ kind: "answer", status: 400 }, { kind: "answer", status: 400 });
    const send = async (batch: number) => {
      tracing.tracer.begin("root", "server", undefined).end();
      await collector.receiver.received(batch);
    };
    await send(1);
    await waitUntil(() => lines.length === 1);
    await send(2);
    await send(3);
    await waitUntil(() => lines.length === 2);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([
      "spans can't be sent and are dropped",
      "spans are sent again",
    ]);
    await tracing.close();
  });
});
