import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { type GenerationEvent, Outcome } from "../../../../gen/media/event/v1/generation_event_pb.ts";
import type { Batch } from "../contract.ts";
import {
  attributesOf,
  attributesOfAttempt,
  errorType,
  operationName,
  type SpanAttributes,
} from "./span-attributes.ts";

/** A finished span as OpenTelemetry's packages take it. */
type FinishedSpan = Parameters<typeof ProtobufTraceSerializer.serializeRequest>[0][number];

/** What one receiver wants besides. `trace` is the caller's, undefined where it is not disclosed. */
export type DescribeSpan = (event: GenerationEvent, trace: JsonObject | undefined) => SpanAttributes;

type HighResolutionTime = FinishedSpan["startTime"];

/** Values of OpenTelemetry's enums. */
const clientKind: FinishedSpan["kind"] = 2;
const unsetStatus: FinishedSpan["status"]["code"] = 0;
const errorStatus: FinishedSpan["status"]["code"] = 2;
const sampledFlag = 1;

const resource: FinishedSpan["resource"] = {
  attributes: { "service.name": "media-gateway" },
  merge: () => resource,
  getRawAttributes: () => [["service.name", "media-gateway"]],
};
const instrumentationScope = { name: "media-gateway" };

/** A generation as one span, its attempts as events in it. Failures and `lost` are spans of status error. */
export function toSpan(
  event: GenerationEvent,
  disclosed: Batch["disclosed"],
  describe?: DescribeSpan,
): FinishedSpan {
  const trace = disclosed.requestContext ? event.trace : undefined;
  const { traceId, spanId, parentSpanId } = spanIdsOf(event, trace);
  const startTime = toTime(event.startedAt ?? event.endedAt);
  const endTime = later(startTime, toTime(event.endedAt));
  const events = event.attempts.map((attempt, index) => ({
    name: "media.attempt",
    time: attempt.startedAt === undefined ? startTime : toTime(attempt.startedAt),
    attributes: attributesOfAttempt(attempt, index + 1),
  }));
  return {
    name: nameOf(event, trace),
    kind: clientKind,
    spanContext: () => ({ traceId, spanId, traceFlags: sampledFlag }),
    ...(parentSpanId === undefined
      ? {}
      : { parentSpanContext: { traceId, spanId: parentSpanId, traceFlags: sampledFlag, isRemote: true } }),
    startTime,
    endTime,
    status: statusOf(event),
    attributes: { ...attributesOf(event, disclosed), ...describe?.(event, trace) },
    links: [],
    events,
    duration: [0, 0],
    ended: true,
    resource,
    instrumentationScope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function nameOf({ model }: GenerationEvent, trace: JsonObject | undefined): string {
  const given = trace?.generation_name;
  return typeof given === "string" && given !== "" ? given : `${operationName} ${model}`;
}

function statusOf(event: GenerationEvent): FinishedSpan["status"] {
  const isError = event.outcome === Outcome.FAILED || event.outcome === Outcome.LOST;
  return isError ? { code: errorStatus, message: errorType(event) } : { code: unsetStatus };
}

/** Nanoseconds since 1970 must fit in 63 bits. */
const latestSeconds = 9_223_372_035n;

function toTime(instant: Timestamp | undefined): HighResolutionTime {
  if (instant === undefined || instant.seconds < 0n) return [0, 0];
  return instant.seconds > latestSeconds
    ? [Number(latestSeconds), 0]
    : [Number(instant.seconds), instant.nanos];
}

function later(first: HighResolutionTime, second: HighResolutionTime): HighResolutionTime {
  const isLater = second[0] > first[0] || (second[0] === first[0] && second[1] > first[1]);
  return isLater ? second : first;
}

/** Where a span stands in a trace, in lower-case hex. */
interface SpanIds {
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
function spanIdsOf(event: GenerationEvent, trace: JsonObject | undefined): SpanIds {
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
