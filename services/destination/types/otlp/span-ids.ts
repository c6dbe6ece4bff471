import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { GenerationEvent } from "../../../../gen/media/event/v1/generation_event_pb.ts";

/** Where a span stands in a trace, in lower-case hex. */
export interface SpanIds {
  /** 32 digits. */
  readonly traceId: string;
  /** 16 digits. */
  readonly spanId: string;
  /** The caller's own span around it, if it names one. */
  readonly parentSpanId: string | undefined;
}

/**
 * The ids of a generation's span: always the same for one event and revision, so that receivers recognize a repetition.
 * The trace is the caller's: `trace.trace_id` itself where it is one (32 hex digits, a UUID's dashes left out), a digest
 * of it and the account otherwise. Without one, each generation is a trace of its own. `trace` is undefined where it is
 * not disclosed.
 */
export function spanIdsOf(event: GenerationEvent, trace: JsonObject | undefined): SpanIds {
  const { trace_id: given, parent_span_id: parent } = trace ?? {};
  return {
    traceId: traceIdOf(event, typeof given === "string" ? given : ""),
    spanId: digest(16, "span", event.eventId, String(event.revision)),
    parentSpanId: typeof parent === "string" ? idOf(parent, 16) : undefined,
  };
}

function traceIdOf({ eventId, accountId }: GenerationEvent, given: string): string {
  if (given === "") return digest(32, "generation", eventId);
  return idOf(given.replaceAll("-", ""), 32) ?? digest(32, "trace", accountId, given);
}

/** The text as an id, or undefined where it is none; an id of zeros counts as none. */
function idOf(text: string, digits: number): string | undefined {
  const isId = text.length === digits && /^[0-9a-f]+$/i.test(text) && !/^0+$/.test(text);
  return isId ? text.toLowerCase() : undefined;
}

function digest(digits: number, ...parts: string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, digits);
}
