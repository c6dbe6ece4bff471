import type { Kafka, Message, ProducerConfig } from "kafkajs";
import { expect, test } from "vitest";
import { silentLog } from "../../runtime/log.ts";
import { KafkaSender } from "./kafka-sender.ts";

/** A client whose producers place messages as kafkajs does and confirm the partitions that `confirm` names. */
function fakeKafka(partitions: number, confirm: (producer: number) => (partition: number) => boolean) {
  const sends: { producer: number; texts: string[] }[] = [];
  let producers = 0;
  const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
    partitionId,
    partitionErrorCode: 0,
    leader: 1,
    replicas: [1],
    isr: [1],
  }));
  const kafka = {
    producer({ createPartitioner }: Required<ProducerConfig>) {
      const producer = producers;
      producers += 1;
      const place = createPartitioner();
      return {
        connect: async () => undefined,
        disconnect: async () => undefined,
        async send({ topic, messages }: { topic: string; messages: Message[] }) {
          sends.push({ producer, texts: messages.map(({ value }) => String(value)) });
          const places = new Set(messages.map((message) => place({ topic, partitionMetadata, message })));
          return [...places]
            .filter(confirm(producer))
            .map((partition) => ({ topicName: topic, partition, errorCode: 0 }));
        },
      };
    },
  };
  return { kafka: kafka as unknown as Kafka, sends };
}

const letters = [..."abcdefghijkl"];
const messages = letters.map((letter) => ({ key: letter, value: Buffer.from(letter) }));

test("what an answer leaves out is sent again, in its order, by another producer", async () => {
  const { kafka, sends } = fakeKafka(3, (producer) => (partition) => producer > 0 || partition === 1);
  await new KafkaSender(kafka, silentLog).send("topic", messages, AbortSignal.timeout(10_000));
  expect(sends.map(({ producer }) => producer)).toEqual([0, 1]);
  const [first, second] = sends;
  expect(first?.texts).toEqual(letters);
  expect(second?.texts.length).toBeGreaterThan(0);
  expect(second?.texts.length).toBeLessThan(letters.length);
  expect(second?.texts).toEqual(letters.filter((letter) => second?.texts.includes(letter)));
});

test("sends go one after another, and one that is given up while it waits is never begun", async () => {
  const { kafka, sends } = fakeKafka(1, () => () => true);
  const sender = new KafkaSender(kafka, silentLog);
  const [one, two, three] = [messages.slice(0, 1), messages.slice(1, 2), messages.slice(2, 3)];
  const given = new AbortController();
  const first = sender.send("topic", one, AbortSignal.timeout(10_000));
  const second = sender.send("topic", two, given.signal);
  const third = sender.send("topic", three, AbortSignal.timeout(10_000));
  given.abort(new Error("no time"));
  await expect(second).rejects.toThrow("no time");
  await Promise.all([first, third]);
  expect(sends.map(({ texts }) => texts)).toEqual([["a"], ["c"]]);
});

test("many messages go in several requests, in their order", async () => {
  const { kafka, sends } = fakeKafka(1, () => () => true);
  const many = Array.from({ length: 2500 }, (_, index) => ({ key: "k", value: Buffer.from(String(index)) }));
  await new KafkaSender(kafka, silentLog).send("topic", many, AbortSignal.timeout(10_000));
  expect(sends.map(({ texts }) => texts.length)).toEqual([1000, 1000, 500]);
  expect(sends.flatMap(({ texts }) => texts)).toEqual(many.map(({ value }) => String(value)));
});

test("a closed sender takes nothing and gives up what waits", async () => {
  const { kafka } = fakeKafka(1, () => () => false);
  const sender = new KafkaSender(kafka, silentLog);
  const waiting = sender.send("topic", messages, AbortSignal.timeout(10_000));
  const behind = sender.send("topic", messages, AbortSignal.timeout(10_000));
  await Promise.all([
    expect(waiting).rejects.toThrow("the bus was closed"),
    expect(behind).rejects.toThrow("the bus was closed"),
    sender.close(),
  ]);
  await expect(sender.send("topic", messages, AbortSignal.timeout(10_000))).rejects.toThrow("closed");
});
