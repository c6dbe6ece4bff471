import { JsonTraceSerializer, ProtobufTraceSerializer } from "@opentelemetry/otlp-transformer";
import { type Batch, DeliveryError, type ReceiverAnswer } from "../contract.ts";
import { answerError, checkAnswer, textOf } from "../receiver-answer.ts";
import { type DescribeSpan, toSpan } from "./span.ts";

/** The content types of how an export request may be written. */
export const contentTypes = { protobuf: "application/x-protobuf", json: "application/json" } as const;

const serializers = { protobuf: ProtobufTraceSerializer, json: JsonTraceSerializer };

/** An ExportTraceServiceRequest of OTLP with a span for each event of the batch; without a batch one with no spans. */
export function encodeExport(
  encoding: keyof typeof contentTypes,
  batch: Batch | undefined,
  describe?: DescribeSpan,
): Uint8Array {
  const spans = batch?.events.map((event) => toSpan(event, batch.disclosed, describe)) ?? [];
  const bytes = serializers[encoding].serializeRequest(spans);
  if (bytes === undefined) throw new DeliveryError("the batch could not be encoded");
  return bytes;
}

/**
 * Throws DeliveryError unless the answer says that every span was taken. An answer in neither of OTLP's encodings has
 * nothing to add to its status, as for OpenTelemetry's own exporters.
 */
export function checkExportAnswer(answer: ReceiverAnswer, nowMs: number): void {
  checkAnswer(answer, { nowMs });
  if (answer.body.length === 0) return;
  const rejected = rejectedSpans(answer);
  if (rejected > 0) throw answerError(`the receiver rejected ${rejected} of the spans`, answer);
}

function rejectedSpans(answer: ReceiverAnswer): number {
  try {
    const { partialSuccess } = decodeAnswer(answer);
    return Number(partialSuccess?.rejectedSpans ?? 0);
  } catch (thrown) {
    const { status } = answer;
    throw new DeliveryError("what answers at the address does not speak OTLP", { status, cause: thrown });
  }
}

type ExportAnswer = ReturnType<typeof ProtobufTraceSerializer.deserializeResponse>;

function decodeAnswer(answer: ReceiverAnswer): ExportAnswer {
  const contentType = answer.headers["content-type"] ?? "";
  if (/^application\/(x-)?protobuf\b/i.test(contentType))
    return ProtobufTraceSerializer.deserializeResponse(answer.body);
  return /^application\/json\b/i.test(contentType) ? (JSON.parse(textOf(answer)) as ExportAnswer) : {};
}
