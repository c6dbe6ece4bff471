import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { type KafkaProxy, startKafkaProxy } from "../support/kafka/kafka-proxy.ts";
import { KafkaStage, kafkaPatienceMs, kafkaTimeoutMs, textMessage } from "../support/kafka/kafka-stage.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const patience = { timeoutMs: kafkaPatienceMs };

let proxy: KafkaProxy;
let broker: KafkaBroker;
let stage: KafkaStage;

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined) return;
  proxy = await startKafkaProxy();
  broker = await startKafkaBroker({ advertisedPort: proxy.port });
  proxy.connectTo(broker.brokers[0] ?? "");
  stage = new KafkaStage([`localhost:${proxy.port}`]);
});

beforeEach((context) => needKafka(context));

afterAll(async () => {
  await stage?.close();
  await proxy?.close();
  await broker?.stop();
});

test("whatever answers get lost, nothing that was confirmed is, and each key keeps its order", async () => {
  const topic = await stage.makeTopic({ partitions: 3 });
  const bus = stage.open();
  let answers = 0;
  proxy.decide(() => {
    answers += 1;
    return answers % 3 === 0 ? "lose" : "pass";
  });
  const confirmed: Record<string, string[]> = {};
  const sendAll = async (key: string) => {
    const texts: string[] = [];
    confirmed[key] = texts;
    for (let index = 0; index < 12; index += 1) {
      const text = `${key}: ${index}`;
      await sendMessages(bus, topic, [textMessage(key, text)], AbortSignal.timeout(kafkaPatienceMs));
      texts.push(text);
    }
  };
  await Promise.all(["ann", "ben", "cid", "dora", "eve", "finn"].map(sendAll));
  proxy.decide(() => "pass");
  expect(answers).toBeGreaterThan(72);
  const reader = stage.read(bus, { topic });
  await expect.poll(() => reader.texts(), { timeout: kafkaPatienceMs }).toEqual(confirmed);
});

test.for([
  ["OUT_OF_ORDER_SEQUENCE_NUMBER", 45],
  ["DUPLICATE_SEQUENCE_NUMBER", 46],
  ["INVALID_PRODUCER_EPOCH", 47],
  ["UNKNOWN_PRODUCER_ID", 59],
  ["NOT_ENOUGH_REPLICAS", 19],
  ["UNKNOWN_TOPIC_OR_PARTITION", 3],
] as const)("a producer that is told %s goes on", async ([, errorCode]) => {
  const topic = await stage.makeTopic();
  const bus = stage.open();
  const send = (text: string) =>
    sendMessages(bus, topic, [textMessage("k", text)], AbortSignal.timeout(kafkaPatienceMs));
  await send("before");
  let errors = 0;
  proxy.decide(() => {
    errors += 1;
    return errors > 2 ? "pass" : { errorCode };
  });
  await send("during");
  expect(errors).toBeGreaterThan(2);
  await send("after");
  const reader = stage.read(bus, { topic });
  await waitUntil(() => reader.texts().k?.length === 3, patience);
  expect(reader.texts()).toEqual({ k: ["before", "during", "after"] });
});

test("a send that Kafka refuses in part leaves nothing behind that swallows the next", async () => {
  const topic = await stage.makeTopic({ partitions: 3 });
  const bus = stage.open();
  const keys = ["ann", "ben", "cid", "dora", "eve", "finn"];
  const send = (text: string) =>
    sendMessages(
      bus,
      topic,
      keys.map((key) => textMessage(key, text)),
      AbortSignal.timeout(kafkaPatienceMs),
    );
  await send("first");
  proxy.decide(() => ({ errorCode: 10 }));
  await expect(send("refused")).rejects.toThrow("MESSAGE_TOO_LARGE");
  proxy.decide(() => "pass");
  await send("last");
  const reader = stage.read(bus, { topic });
  const complete = () => keys.every((key) => reader.texts()[key]?.includes("last"));
  await waitUntil(complete, patience);
});
