import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { needKafka, testKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { KafkaStage, kafkaPatienceMs, kafkaTimeoutMs, textMessage } from "../support/kafka/kafka-stage.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const patience = { timeoutMs: kafkaPatienceMs };
const sessionTimeoutMs = 1500;

let stage: KafkaStage;

beforeAll(async () => {
  if (kafkaUnavailable() === undefined) stage = new KafkaStage((await testKafka()).brokers);
});

beforeEach((context) => needKafka(context));

afterAll(() => stage?.close());

test("a member lives while its handler runs, is told when another comes, and what it then ends is its own", async () => {
  const topic = await stage.makeTopic();
  const group = `group.${randomUUID()}`;
  const [one, two] = [stage.open({ sessionTimeoutMs }), stage.open({ sessionTimeoutMs })];
  await sendMessages(
    one,
    topic,
    ["a", "b", "c", "d"].map((text) => textMessage("k", text)),
    AbortSignal.timeout(kafkaPatienceMs),
  );
  const gate = Promise.withResolvers<void>();
  let given: AbortSignal | undefined;
  const first = stage.read(one, {
    topic,
    group,
    maxBatchMessages: 2,
    async handle(_, signal) {
      given ??= signal;
      await gate.promise;
    },
  });
  await waitUntil(() => given, patience);
  const startMs = performance.now();
  await waitUntil(() => performance.now() - startMs > 2 * sessionTimeoutMs, patience);
  expect(first.consumer.connected).toBe(true);
  expect(given?.aborted).toBe(false);
  const second = stage.read(two, { topic, group });
  await waitUntil(() => given?.aborted, patience);
  gate.resolve();
  await waitUntil(() => first.messages.length + second.messages.length >= 4, patience);
  const all = [...first.messages, ...second.messages].map(({ value }) => Buffer.from(value).toString());
  expect(all.sort()).toEqual(["a", "b", "c", "d"]);
  expect(first.messages.length).toBeGreaterThanOrEqual(2);
});

test("a member that leaves while it joins holds no partition", async () => {
  const topic = await stage.makeTopic({ partitions: 4 });
  const group = `group.${randomUUID()}`;
  const bus = stage.open({ sessionTimeoutMs });
  const texts = Array.from({ length: 40 }, (_, index) => String(index));
  const sendAll = () =>
    sendMessages(
      bus,
      topic,
      texts.map((text) => textMessage(`key ${text}`, text)),
      AbortSignal.timeout(kafkaPatienceMs),
    );
  const gate = Promise.withResolvers<void>();
  let given: AbortSignal | undefined;
  const staying = stage.read(bus, {
    topic,
    group,
    async handle(_, signal) {
      given ??= signal;
      await gate.promise;
    },
  });
  await sendAll();
  await waitUntil(() => given, patience);
  let handled = 0;
  // So long that a member left behind would hold its partitions to the end of this test.
  const passing = stage.open({ sessionTimeoutMs: 5 * kafkaPatienceMs }).consume({
    topic,
    group,
    maxBatchMessages: 1,
    async handle() {
      handled += 1;
    },
  });
  await waitUntil(() => given?.aborted, patience);
  const left = passing.leave();
  gate.resolve();
  await left;
  await waitUntil(() => staying.messages.length >= texts.length, patience);
  const before = staying.messages.length;
  await sendAll();
  await waitUntil(() => staying.messages.length >= before + texts.length, patience);
  expect(handled).toBe(0);
});

test("a topic that is made after its consumer is found", async () => {
  const bus = stage.open();
  const topic = `topic.${randomUUID()}`;
  const reader = stage.read(bus, { topic });
  await expect(
    sendMessages(bus, topic, [textMessage("k", "too early")], AbortSignal.timeout(kafkaPatienceMs)),
  ).rejects.toThrow("UNKNOWN_TOPIC_OR_PARTITION");
  const settings = { name: topic, partitions: 2, replication: 1, retentionMs: 3_600_000 };
  await bus.ensureTopics([settings], AbortSignal.timeout(kafkaPatienceMs));
  await sendMessages(bus, topic, [textMessage("k", "in time")], AbortSignal.timeout(kafkaPatienceMs));
  await waitUntil(() => reader.messages.length > 0, patience);
  expect(reader.texts()).toEqual({ k: ["in time"] });
});
