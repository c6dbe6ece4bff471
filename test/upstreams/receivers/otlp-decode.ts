import { fromBinary, fromJson, type JsonObject, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { otlpMessage } from "./otlp-schema.ts";

/** An attribute's value; integers of 64 bits are bigint. */
export type OtlpValue = string | bigint | number | boolean | undefined;

/** Attributes by key. */
export type OtlpAttributes = Readonly<Record<string, OtlpValue>>;

/** A span as it was received. */
export interface OtlpSpan {
  readonly resource: OtlpAttributes;
  readonly scope: string;
  /** Lower-case hex; empty for no parent. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly statusCode: number;
  readonly statusMessage: string;
  readonly attributes: OtlpAttributes;
  readonly events: readonly {
    readonly name: string;
    readonly timeNs: bigint;
    readonly attributes: OtlpAttributes;
  }[];
}

/** The spans of a request in protobuf. Throws on anything that OTLP has no name for. */
export function decodeExport(bytes: Uint8Array): OtlpSpan[] {
  const schema = otlpMessage("ExportTraceServiceRequest");
  const json = toJson(schema, fromBinary(schema, bytes));
  // A field that is not in the schema gets lost on the way through JSON, and bytes with it.
  const known = toBinary(schema, fromJson(schema, json));
  const all = toBinary(schema, fromBinary(schema, bytes));
  if (known.length !== all.length) throw new Error("there are fields that OTLP does not have");
  return readSpans(json as JsonObject);
}

/** The same of one in JSON, whose ids are hex and not base64 as protobuf would have it. */
export function decodeJsonExport(text: string): OtlpSpan[] {
  const parsed: unknown = JSON.parse(text, (name, value: unknown) =>
    /^(trace|span|parentSpan)Id$/.test(name) ? Buffer.from(String(value), "hex").toString("base64") : value,
  );
  const schema = otlpMessage("ExportTraceServiceRequest");
  return readSpans(
    toJson(schema, fromJson(schema, parsed as JsonValue, { ignoreUnknownFields: false })) as JsonObject,
  );
}

interface RawAttribute {
  readonly key: string;
  readonly value?: {
    readonly stringValue?: string;
    readonly intValue?: string;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
  };
}

interface RawSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name?: string;
  readonly kind: number;
  readonly startTimeUnixNano?: string;
  readonly endTimeUnixNano?: string;
  readonly status?: { readonly code?: number; readonly message?: string };
  readonly attributes?: RawAttribute[];
  readonly events?: { name: string; timeUnixNano?: string; attributes?: RawAttribute[] }[];
}

interface RawExport {
  readonly resourceSpans?: {
    readonly resource?: { readonly attributes?: RawAttribute[] };
    readonly scopeSpans?: { readonly scope?: { readonly name?: string }; readonly spans?: RawSpan[] }[];
  }[];
}

function readSpans(json: JsonObject): OtlpSpan[] {
  const { resourceSpans = [] } = json as unknown as RawExport;
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ scope, spans = [] }) =>
      spans.map((span) => ({
        resource: readAttributes(resource?.attributes),
        scope: scope?.name ?? "",
        ...readSpan(span),
      })),
    ),
  );
}

function readSpan(span: RawSpan): Omit<OtlpSpan, "resource" | "scope"> {
  return {
    traceId: idOf(span.traceId, 16),
    spanId: idOf(span.spanId, 8),
    parentSpanId: span.parentSpanId === undefined ? "" : idOf(span.parentSpanId, 8),
    name: span.name ?? "",
    kind: span.kind,
    startNs: BigInt(span.startTimeUnixNano ?? "0"),
    endNs: BigInt(span.endTimeUnixNano ?? "0"),
    statusCode: span.status?.code ?? 0,
    statusMessage: span.status?.message ?? "",
    attributes: readAttributes(span.attributes),
    events: (span.events ?? []).map(({ name, timeUnixNano = "0", attributes }) => ({
      name,
      timeNs: BigInt(timeUnixNano),
      attributes: readAttributes(attributes),
    })),
  };
}

function readAttributes(attributes: readonly RawAttribute[] = []): OtlpAttributes {
  const entries = attributes.map(({ key, value = {} }) => {
    const { stringValue, intValue, doubleValue, boolValue } = value;
    return [key, intValue === undefined ? (stringValue ?? doubleValue ?? boolValue) : BigInt(intValue)];
  });
  const keys = new Set(entries.map(([key]) => key));
  if (keys.size < entries.length) throw new Error("an attribute is there twice");
  return Object.fromEntries(entries) as OtlpAttributes;
}

function idOf(base64: string, bytes: number): string {
  const id = Buffer.from(base64, "base64");
  if (id.length !== bytes || id.every((byte) => byte === 0)) throw new Error("an id is none");
  return id.toString("hex");
}
