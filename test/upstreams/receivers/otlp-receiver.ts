/** A stand-in for what speaks OTLP over HTTP in protobuf: a collector, or with `authorization` Langfuse or Grafana Cloud. */
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { ReceivedRequest } from "../stand-in/stand-in-server.ts";
import { decodeExport, type OtlpSpan } from "./otlp-decode.ts";
import { otlpMessage } from "./otlp-schema.ts";
import {
  type Receiver,
  type ReceiverBehaviour,
  type ReceiverVerdict,
  refuse,
  startReceiver,
} from "./receiver.ts";

/** Options of startOtlpReceiver. */
export interface OtlpReceiverOptions {
  /** Where it takes traces; `/v1/traces` unless given. */
  readonly path?: string;
  /** User and password that it wants by HTTP's Basic scheme. */
  readonly basic?: { readonly user: string; readonly password: string };
  /** Headers that it wants besides, such as a token; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

const contentType = "application/x-protobuf";

/** Starts it. It answers as the specification says: 200 with an empty ExportTraceServiceResponse. */
export function startOtlpReceiver(options: OtlpReceiverOptions = {}): Promise<Receiver> {
  return startReceiver({ judge: (request) => judge(request, options) });
}

/** The spans of a request that it took. */
export function spansOf(request: ReceivedRequest): OtlpSpan[] {
  return decodeExport(request.bytes);
}

/** It takes a request, but says that it rejected spans of it. */
export function partialSuccess(rejectedSpans: bigint, errorMessage: string): ReceiverBehaviour {
  const schema = otlpMessage("ExportTraceServiceResponse");
  const answer = { partialSuccess: { rejectedSpans, errorMessage } } as MessageInitShape<typeof schema>;
  return {
    kind: "answer",
    status: 200,
    headers: { "content-type": contentType },
    body: toBinary(schema, create(schema, answer)),
  };
}

function judge(
  request: ReceivedRequest,
  { path = "/v1/traces", basic, headers: wanted = {} }: OtlpReceiverOptions,
): ReceiverVerdict {
  const { method, headers } = request;
  if (request.path !== path) return refuse(404, `no route ${request.path}`);
  if (method !== "POST") return refuse(405, "only POST", { allow: "POST" });
  if (basic !== undefined) {
    const expected = `Basic ${btoa(`${basic.user}:${basic.password}`)}`;
    if (headers.authorization !== expected) return refuse(401, "invalid credentials");
  }
  const isWrong = Object.entries(wanted).some(([name, value]) => headers[name] !== value);
  if (isWrong) return refuse(401, "invalid credentials");
  if (headers["content-type"] !== contentType) return refuse(415, `not ${contentType}`);
  try {
    decodeExport(request.bytes);
  } catch (thrown) {
    return refuse(400, `malformed request: ${String(thrown)}`);
  }
  return { isTaken: true, status: 200, headers: { "content-type": contentType } };
}
