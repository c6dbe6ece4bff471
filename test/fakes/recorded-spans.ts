import {
  AlwaysOnSampler,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Tracer } from "../../lib/runtime/span.ts";
import { createRecordingTracer } from "../../lib/telemetry/trace-spans.ts";

/** A tracer that records everything, and what has ended so far. */
export function recordSpans(): { tracer: Tracer; ended(): readonly ReadableSpan[] } {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({
    sampler: new AlwaysOnSampler(),
    spanProcessors: [new SimpleSpanProcessor({ exporter })],
  });
  const tracer = createRecordingTracer({ tracer: provider.getTracer("test"), ratio: 1 });
  return { tracer, ended: () => exporter.getFinishedSpans() };
}
