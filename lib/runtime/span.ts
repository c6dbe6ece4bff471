import { createContextKey } from "@connectrpc/connect";

/*
 * Traces as the rest of the system sees them: spans that are handed on explicitly, and nothing of how they are kept.
 * A span that is not recorded costs nothing: it is one object for all, its children are itself, and what is set on it is
 * dropped. Whoever has to make something for a span first looks at `recording`.
 * What stands in a span are words of ours and numbers: never a text of a caller's or an upstream's, a key or a token.
 */

/** What work a span stands for, in OpenTelemetry's words. */
export type SpanKind = "internal" | "server" | "client" | "producer" | "consumer";

/** What a span says, under names of OpenTelemetry's semantic conventions or `media.`; undefined says nothing. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** How log lines name a span. */
export interface SpanLogFields {
  readonly trace_id: string;
  readonly span_id: string;
}

/** A piece of work within a trace. Nothing of it throws. */
export interface Span {
  readonly recording: boolean;
  /** For the log lines of the same work; undefined when nothing is recorded. */
  readonly logFields: SpanLogFields | undefined;
  /** The `traceparent` of W3C Trace Context for whoever goes on with the trace; undefined when nothing is recorded. */
  readonly traceparent: string | undefined;
  /** Work that is part of this. `startedAtMs`: wall clock, Unix milliseconds; now unless given. */
  child(name: string, kind: SpanKind, startedAtMs?: number): Span;
  rename(name: string): void;
  set(attributes: SpanAttributes): void;
  /** This work was also done for another span. */
  link(other: Span): void;
  /**
   * Ends it; only the first call counts. `failure` is a word of a closed list that says why the work failed; it makes the
   * span an error unless `isFault` is false, as for what a caller did wrong.
   */
  end(failure?: string, isFault?: boolean): void;
}

/** Where traces begin in a process. */
export interface Tracer {
  /**
   * For work that a caller from outside asks for: whether it is recorded is drawn here, at the configured ratio. A valid
   * `traceparent` of the caller becomes the parent, but its sampled flag and its trace id have no say: otherwise callers
   * would decide how much is recorded.
   */
  begin(name: string, kind: SpanKind, traceparent: string | null | undefined): Span;
  /** For work that another process of ours asks for: recorded if that process records the trace, and not otherwise. */
  join(name: string, kind: SpanKind, traceparent: string | null | undefined, startedAtMs?: number): Span;
}

/** The span of all work that is not recorded. */
export const silentSpan: Span = {
  recording: false,
  logFields: undefined,
  traceparent: undefined,
  child: () => silentSpan,
  rename: () => undefined,
  set: () => undefined,
  link: () => undefined,
  end: () => undefined,
};

/** Records nothing. */
export const silentTracer: Tracer = { begin: () => silentSpan, join: () => silentSpan };

/** The header that carries a trace between processes, in requests and on messages. */
export const traceparentHeader = "traceparent";

/** The span of the request that a handler works on, and of what an outgoing call is made for. */
export const spanKey = createContextKey<Span>(silentSpan, { description: "span" });

/** Spans that an outgoing call is made for besides that of `spanKey`. */
export const otherSpansKey = createContextKey<readonly Span[] | undefined>(undefined, {
  description: "other spans",
});
