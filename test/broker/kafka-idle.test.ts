import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { needKafka, testKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { KafkaStage, kafkaPatienceMs, kafkaTimeoutMs, textMessage } from "../support/kafka/kafka-stage.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const patience = { timeoutMs: kafkaPatienceMs };

let stage: KafkaStage;

beforeAll(async () => {
  if (kafkaUnavailable() === undefined) stage = new KafkaStage((await testKafka()).brokers);
});

beforeEach((context) => needKafka(context));

afterAll(() => stage?.close());

test("connections that are used set no timers in the past, which come back at once", async () => {
  const topic = await stage.makeTopic();
  const bus = stage.open();
  const reader = stage.read(bus, { topic });
  await sendMessages(bus, topic, [textMessage("k", "a")], AbortSignal.timeout(kafkaPatienceMs));
  await waitUntil(() => reader.messages.length === 1, patience);
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  for (let round = 0; round < 5; round++) {
    await sendMessages(
      bus,
      topic,
      [textMessage("k", `round ${round}`)],
      AbortSignal.timeout(kafkaPatienceMs),
    );
    await waitUntil(() => reader.messages.length === round + 2, patience);
  }
  expect(timers.mock.calls.filter(([, delayMs]) => Number(delayMs) < 0)).toEqual([]);
});
