import type { GenerationEvent } from "../../gen/media/event/v1/generation_event_pb.ts";
import { type Span, type Tracer, traceparentHeader } from "../runtime/span.ts";
import type { Bus, BusMessage, OutgoingMessage } from "./bus.ts";
import { generationEventsTopic } from "./topics.ts";

/** The span of an event's way to the bus. */
export function beginSending(parent: Span, { system }: Pick<Bus, "system">, event: GenerationEvent): Span {
  const span = parent.child(`send ${generationEventsTopic}`, "producer");
  if (!span.recording) return span;
  span.set({
    "messaging.system": system,
    "messaging.operation.name": "send",
    "messaging.operation.type": "send",
    "messaging.destination.name": generationEventsTopic,
    "media.generation_id": event.eventId,
  });
  return span;
}

/** A message whose consumers go on with a span. */
export function withTrace(message: OutgoingMessage, { traceparent }: Span): OutgoingMessage {
  if (traceparent === undefined) return message;
  return { ...message, headers: { ...message.headers, [traceparentHeader]: traceparent } };
}

/**
 * A span for each message of a batch whose sender records its trace, from when the batch is there until it is stored: a
 * message goes on with the trace of the request that it reports, so each has its own, and all last as long as the batch.
 */
export function beginProcessing(
  tracer: Tracer,
  { system }: Pick<Bus, "system">,
  group: string,
  batch: readonly BusMessage[],
): ReadonlyMap<BusMessage, Span> {
  const spans = new Map<BusMessage, Span>();
  for (const message of batch) {
    const { topic, partition, offset, headers } = message;
    const traceparent = headers[traceparentHeader];
    if (traceparent === undefined) continue;
    const span = tracer.join(`process ${topic}`, "consumer", traceparent);
    if (!span.recording) continue;
    span.set({
      "messaging.system": system,
      "messaging.operation.name": "process",
      "messaging.operation.type": "process",
      "messaging.destination.name": topic,
      "messaging.destination.partition.id": String(partition),
      "messaging.consumer.group.name": group,
      "messaging.kafka.offset": system === "kafka" ? Number(offset) : undefined,
      "messaging.batch.message_count": batch.length,
    });
    spans.set(message, span);
  }
  return spans;
}
