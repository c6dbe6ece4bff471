import type { OtlpSpan } from "../upstreams/receivers/otlp-decode.ts";
import { spansOf, startOtlpReceiver } from "../upstreams/receivers/otlp-receiver.ts";
import type { Receiver } from "../upstreams/receivers/receiver.ts";
import { waitUntil } from "./wait-until.ts";

/** A collector of the test's own that speaks OTLP over HTTP, and the spans that it was sent. */
export interface TraceReceiver extends AsyncDisposable {
  readonly receiver: Receiver;
  /** The variables that make a process send its traces here. */
  readonly env: Record<string, string>;
  /** Everything received so far. */
  spans(): readonly OtlpSpan[];
  /** Waits until a trace has a span for each of the names, and gives all of it. */
  trace(traceId: string, names: readonly string[]): Promise<readonly OtlpSpan[]>;
}

/** Long enough for the batches of every process and for consumers that join their group. */
const patienceMs = 60_000;

/** Starts a collector. */
export async function startTraceReceiver(): Promise<TraceReceiver> {
  const receiver = await startOtlpReceiver();
  const spans = () => receiver.requests.flatMap(spansOf);
  const ofTrace = (traceId: string) => spans().filter((span) => span.traceId === traceId);
  return {
    receiver,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.baseUrl },
    spans,
    async trace(traceId, names) {
      const missing = () => {
        const there = new Set(ofTrace(traceId).map(placeOf));
        return names.filter((name) => !there.has(name));
      };
      await waitUntil(() => missing().length === 0, { timeoutMs: patienceMs, intervalMs: 100 }).catch(() => {
        const there = ofTrace(traceId).map(placeOf).join("\n");
        throw new Error(`no span of ${missing().join(", ")} in\n${there}`);
      });
      return ofTrace(traceId);
    },
    [Symbol.asyncDispose]: () => receiver.close(),
  };
}

/** A span as tests name it: the service, a colon and its name. */
export function placeOf({ resource, name }: OtlpSpan): string {
  return `${resource["service.name"]}: ${name}`;
}

/** The names of the spans from the root to this one. */
export function pathTo(span: OtlpSpan, trace: readonly OtlpSpan[]): readonly string[] {
  const parent = trace.find(({ spanId }) => spanId === span.parentSpanId);
  return parent === undefined ? [placeOf(span)] : [...pathTo(parent, trace), placeOf(span)];
}

/** A `traceparent` as a caller would send it, with its ids. */
export function newTraceparent(flags = "01"): { traceId: string; spanId: string; header: string } {
  const traceId = crypto.randomUUID().replaceAll("-", "");
  const spanId = crypto.randomUUID().replaceAll("-", "").slice(0, 16);
  return { traceId, spanId, header: `00-${traceId}-${spanId}-${flags}` };
}
