import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { recordSpans } from "../../test/fakes/recorded-spans.ts";
import { sendMessages } from "../../test/support/kafka/send-messages.ts";
import { createLog, silentLog } from "../runtime/log.ts";
import { type Span, silentSpan } from "../runtime/span.ts";
import { EventConsumer, type EventConsumerOptions } from "./batch-consumer.ts";
import type { Bus } from "./bus.ts";
import { BusStage, patience, patiently } from "./bus-stage.suite.ts";
import { toEventMessage } from "./event-message.ts";
import { beginSending, withTrace } from "./message-spans.ts";
import { type BusDatabaseUnderTest, openBusDatabase } from "./postgres/bus-database.suite.ts";
import { createPostgresBus } from "./postgres/postgres-bus.ts";
import { sampleEvent } from "./sample-event.suite.ts";
import { allTopics, generationEventsTopic } from "./topics.ts";

const hourMs = 3_600_000;
const accountId = randomUUID();

describe("events whose requests are traced", { timeout: 60_000 }, () => {
  let given: BusDatabaseUnderTest;
  let stage: BusStage;
  let bus: Bus;
  let consumer: EventConsumer | undefined;
  let recorded: ReturnType<typeof recordSpans>;
  let logged: Record<string, unknown>[];

  beforeEach(async () => {
    given = await openBusDatabase();
    stage = new BusStage({
      open: () => createPostgresBus({ url: given.url, log: silentLog }),
      close: given.close,
    });
    bus = stage.open();
    await bus.ensureTopics(allTopics({ partitions: 1, replication: 1, retentionMs: hourMs }), patiently());
    recorded = recordSpans();
    logged = [];
  });
  afterEach(async () => {
    await consumer?.stop();
    consumer = undefined;
    await stage.clear();
    await given.close();
  });

  const root = () => recorded.tracer.begin("root", "server", undefined);
  const named = (name: string) => recorded.ended().filter((span) => span.name === name);
  const sent = () => named(`send ${generationEventsTopic}`);
  const processed = () => named(`process ${generationEventsTopic}`);

  function consume(options: Partial<EventConsumerOptions> & Pick<EventConsumerOptions, "apply">): void {
    const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>);
    consumer = new EventConsumer({
      bus,
      group: "test.group",
      log: createLog({ name: "test", level: "debug", destination: { write } }),
      maxAgeMs: 2 * hourMs,
      isPoison: () => false,
      tracer: recorded.tracer,
      ...options,
    });
  }

  /** Publishes an event for each of the spans, and one of a request that is not traced. */
  async function publish(...spans: readonly Span[]) {
    const sendings = [silentSpan, ...spans].map((parent) => {
      const event = sampleEvent({ accountId });
      const span = beginSending(parent, bus, event);
      return { event, span, message: withTrace(toEventMessage(event), span) };
    });
    const messages = sendings.map(({ message }) => message);
    await sendMessages(bus, generationEventsTopic, messages);
    for (const { span } of sendings) span.end();
    return sendings.map(({ event }) => event);
  }

  test("are sent and taken in within those traces, each in its own, and no others are", async () => {
    const spans = [root(), root()];
    const events = await publish(...spans);
    const applied: string[] = [];
    consume({
      apply: async (batch) => {
        applied.push(...batch.map(({ eventId }) => eventId));
        return [];
      },
    });
    await expect.poll(() => processed().length, patience).toBe(2);
    expect(applied).toHaveLength(3);
    for (const [index, span] of spans.entries()) {
      const [sending, processing] = [sent()[index], processed()[index]];
      expect(sending?.parentSpanContext?.spanId).toBe(span.logFields?.span_id);
      expect(sending?.attributes).toMatchObject({
        "messaging.system": "postgresql",
        "messaging.operation.type": "send",
        "media.generation_id": events[index + 1]?.eventId,
      });
      expect(processing?.parentSpanContext?.spanId).toBe(sending?.spanContext().spanId);
      expect(processing?.attributes).toMatchObject({
        "messaging.consumer.group.name": "test.group",
        "messaging.destination.partition.id": "0",
        "messaging.batch.message_count": 3,
      });
      expect(processing?.attributes).not.toHaveProperty("error.type");
    }
    expect(sent()).toHaveLength(2);
  });

  test("say so when they come again, and then when they are stored", async () => {
    await publish(root());
    let failures = 1;
    consume({
      apply: async () => {
        if (failures-- > 0) throw new Error("the store is away");
        return [];
      },
    });
    await expect.poll(() => processed().length, patience).toBe(2);
    expect(processed().map(({ attributes }) => attributes["error.type"])).toEqual(["comes_again", undefined]);
  });

  test("say so when they are quarantined, in the log as well", async () => {
    const span = root();
    const [, event] = await publish(span);
    consume({
      apply: async (batch) =>
        batch
          .filter(({ eventId }) => eventId === event?.eventId)
          .map(({ eventId, revision }) => ({ eventId, revision, reason: "not wanted" })),
    });
    await expect.poll(() => processed().length, patience).toBe(1);
    const [processing] = processed();
    expect(processing?.attributes["error.type"]).toBe("quarantined");
    expect(logged.find(({ msg }) => msg === "event quarantined")).toMatchObject({
      generation_id: event?.eventId,
      trace_id: span.logFields?.trace_id,
      span_id: processing?.spanContext().spanId,
    });
  });
});
