import type { Kafka, Message, ProducerConfig } from "kafkajs";
import { expect, test } from "vitest";
import { PublishError } from "../bus.ts";
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

test("a send of which an answer leaves something out has failed, and another producer makes the next", async () => {
  const { kafka, sends } = fakeKafka(3, (producer) => (partition) => producer > 0 || partition === 1);
  const sender = new KafkaSender(kafka);
  const signal = AbortSignal.timeout(10_000);
  await expect(sender.send("topic", messages, signal)).rejects.toThrow("did not confirm all");
  await sender.send("topic", messages, signal);
  await sender.send("topic", messages, signal);
  expect(sends.map(({ producer }) => producer)).toEqual([0, 1, 1]);
  for (const { texts } of sends) expect(texts).toEqual(letters);
});

test("a topic that is refused again and again is refused for good, until it is taken", async () => {
  let refused = 6;
  const { kafka } = fakeKafka(1, () => {
    refused -= 1;
    if (refused >= 0) throw Object.assign(new Error("no"), { type: "UNKNOWN_TOPIC_OR_PARTITION" });
    return () => true;
  });
  const sender = new KafkaSender(kafka);
  const outcomes: unknown[] = [];
  for (let round = 0; round < 7; round++) {
    const sent = sender.send("topic", messages, AbortSignal.timeout(10_000));
    outcomes.push(
      await sent.then(
        () => "taken",
        (thrown: unknown) => thrown instanceof PublishError,
      ),
    );
  }
  expect(outcomes).toEqual([false, false, false, false, true, true, "taken"]);
});

test("sends go one after another, and one that is given up while it waits is never begun", async () => {
  const { kafka, sends } = fakeKafka(1, () => () => true);
  const sender = new KafkaSender(kafka);
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

test("a closed sender takes nothing and gives up what waits", async () => {
  const { kafka } = fakeKafka(1, () => () => true);
  const sender = new KafkaSender(kafka);
  const waiting = sender.send("topic", messages, AbortSignal.timeout(10_000));
  const behind = sender.send("topic", messages, AbortSignal.timeout(10_000));
  await Promise.all([
    expect(waiting).rejects.toThrow("the bus was closed"),
    expect(behind).rejects.toThrow("the bus was closed"),
    sender.close(),
  ]);
  await expect(sender.send("topic", messages, AbortSignal.timeout(10_000))).rejects.toThrow("closed");
});
