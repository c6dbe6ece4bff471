import {
  type Context,
  type Span as OtelSpan,
  SpanKind as OtelSpanKind,
  type Tracer as OtelTracer,
  ROOT_CONTEXT,
  type SpanContext,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { parseTraceParent } from "@opentelemetry/core";
import { type Span, type SpanAttributes, type SpanKind, silentSpan, type Tracer } from "../runtime/span.ts";

interface RecordingTracerOptions {
  readonly tracer: OtelTracer;
  /** Of the traces that callers begin, this share is recorded: 0 to 1. */
  readonly ratio: number;
  /** From 0 to below 1; the platform's unless given. */
  random?(): number;
}

const kinds: Readonly<Record<SpanKind, OtelSpanKind>> = {
  internal: OtelSpanKind.INTERNAL,
  server: OtelSpanKind.SERVER,
  client: OtelSpanKind.CLIENT,
  producer: OtelSpanKind.PRODUCER,
  consumer: OtelSpanKind.CONSUMER,
};

/** A tracer that records the traces that are drawn, and those that other processes of ours record. */
export function createRecordingTracer(options: RecordingTracerOptions): Tracer {
  const { tracer, ratio, random = Math.random } = options;
  return {
    begin(name, kind, traceparent) {
      if (random() >= ratio) return silentSpan;
      return startSpan(tracer, name, kind, contextOf(parse(traceparent)), undefined);
    },
    join(name, kind, traceparent, startedAtMs) {
      const parent = parse(traceparent);
      if (parent === undefined || (parent.traceFlags & TraceFlags.SAMPLED) === 0) return silentSpan;
      return startSpan(tracer, name, kind, contextOf(parent), startedAtMs);
    },
  };
}

/** What a `traceparent` header says (W3C Trace Context); undefined when it is malformed, which counts as none. */
function parse(traceparent: string | null | undefined): SpanContext | undefined {
  return parseTraceParent(traceparent ?? "") ?? undefined;
}

/** Only ids are taken over: whether it is recorded has been decided by now. */
function contextOf(parent: SpanContext | undefined): Context {
  if (parent === undefined) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true, traceFlags: TraceFlags.SAMPLED });
}

function startSpan(
  tracer: OtelTracer,
  name: string,
  kind: SpanKind,
  context: Context,
  startedAtMs: number | undefined,
): Span {
  const options = { kind: kinds[kind], ...(startedAtMs === undefined ? {} : { startTime: startedAtMs }) };
  return new RecordedSpan(tracer, tracer.startSpan(name, options, context));
}

class RecordedSpan implements Span {
  readonly recording = true;
  readonly context: SpanContext;
  readonly #tracer: OtelTracer;
  readonly #span: OtelSpan;
  #isEnded = false;

  constructor(tracer: OtelTracer, span: OtelSpan) {
    this.#tracer = tracer;
    this.#span = span;
    this.context = span.spanContext();
  }

  get logFields() {
    return { trace_id: this.context.traceId, span_id: this.context.spanId };
  }

  get traceparent(): string {
    return `00-${this.context.traceId}-${this.context.spanId}-01`;
  }

  child(name: string, kind: SpanKind, startedAtMs?: number): Span {
    return startSpan(this.#tracer, name, kind, trace.setSpanContext(ROOT_CONTEXT, this.context), startedAtMs);
  }

  rename(name: string): void {
    if (!this.#isEnded) this.#span.updateName(name);
  }

  set(attributes: SpanAttributes): void {
    if (this.#isEnded) return;
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) this.#span.setAttribute(name, value);
    }
  }

  link(other: Span): void {
    if (!this.#isEnded && other instanceof RecordedSpan) this.#span.addLink({ context: other.context });
  }

  end(failure?: string, isFault = true): void {
    if (this.#isEnded) return;
    if (failure !== undefined) {
      this.#span.setAttribute("error.type", failure);
      if (isFault) this.#span.setStatus({ code: SpanStatusCode.ERROR });
    }
    this.#isEnded = true;
    this.#span.end();
  }
}
