import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { KafkaStage, kafkaPatienceMs, kafkaTimeoutMs, textMessage } from "../support/kafka/kafka-stage.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const patience = { timeoutMs: kafkaPatienceMs };
const quickDeath = { sessionTimeoutMs: 3000 };

let broker: KafkaBroker;
let stage: KafkaStage;

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined) return;
  broker = await startKafkaBroker();
  stage = new KafkaStage(broker.brokers);
});

beforeEach((context) => needKafka(context));

afterAll(async () => {
  await stage?.close();
  await broker?.stop();
});

test("a broker that is absent is waited for, and what nobody waits for any more holds up nothing", async () => {
  const topic = await stage.makeTopic();
  await broker.kill();
  const bus = stage.open(quickDeath);
  const reader = stage.read(bus, { topic });
  const sent = sendMessages(bus, topic, [textMessage("k", "patient")], AbortSignal.timeout(kafkaTimeoutMs));
  const given = new AbortController();
  const hasty = sendMessages(bus, topic, [textMessage("k", "hasty")], given.signal);
  const reason = new Error("no time");
  given.abort(reason);
  await expect(hasty).rejects.toBe(reason);
  await expect(bus.retentionMs(topic, AbortSignal.timeout(kafkaPatienceMs))).rejects.toThrow();
  expect(reader.consumer).toMatchObject({ connected: false, lag: undefined });
  const idle = stage
    .open()
    .consume({ topic, group: "idle", maxBatchMessages: 1, handle: async () => undefined });
  await idle.leave();

  await broker.restart();
  await sent;
  await waitUntil(() => reader.messages.length > 0, patience);
  expect(reader.texts()).toEqual({ k: ["patient"] });
  await waitUntil(() => reader.consumer.connected && reader.consumer.lag === 0, patience);
});

test("a send that is given up under way rejects at once and lands before the next, if at all", async () => {
  const topic = await stage.makeTopic();
  const bus = stage.open(quickDeath);
  await sendMessages(bus, topic, [textMessage("k", "first")], AbortSignal.timeout(kafkaPatienceMs));
  await broker.kill();
  const given = new AbortController();
  const underWay = bus.send(topic, [textMessage("k", "given up")], given.signal);
  const next = sendMessages(bus, topic, [textMessage("k", "next")], AbortSignal.timeout(kafkaTimeoutMs));
  const reason = new Error("no time");
  await new Promise(setImmediate);
  given.abort(reason);
  await expect(underWay).rejects.toBe(reason);
  await broker.restart();
  await next;
  const reader = stage.read(bus, { topic });
  await waitUntil(() => reader.texts().k?.includes("next"), patience);
  expect(reader.texts().k?.filter((text) => text !== "given up")).toEqual(["first", "next"]);
  expect(reader.texts().k?.at(-1)).toBe("next");
});

test("a broker killed with -9 under sends loses nothing that was confirmed", async () => {
  const topic = await stage.makeTopic({ partitions: 3 });
  const bus = stage.open(quickDeath);
  const reader = stage.read(stage.open(quickDeath), { topic });
  const confirmed: Record<string, string[]> = { ann: [], ben: [], cid: [], dora: [] };
  let enough = false;
  const sendOn = async (key: string, texts: string[]) => {
    for (let index = 0; !enough; index += 1) {
      const text = `${key}: ${index}`;
      // The outcome of a send that was given up is unknown: it is sent again, as a publisher does.
      for (let done = false; !done; ) {
        const send = sendMessages(bus, topic, [textMessage(key, text)], AbortSignal.timeout(2000));
        done = await send.then(
          () => true,
          () => false,
        );
      }
      texts.push(text);
    }
  };
  const sending = Object.entries(confirmed).map(([key, texts]) => sendOn(key, texts));
  const count = () => Object.values(confirmed).flat().length;
  await waitUntil(() => count() > 200 && reader.messages.length > 50, patience);
  await broker.kill();
  const before = count();
  await waitUntil(() => !reader.consumer.connected, patience);
  await broker.restart();
  await waitUntil(() => count() > before + 200, patience);
  enough = true;
  await Promise.all(sending);
  await expect.poll(() => reader.texts(), { timeout: kafkaPatienceMs }).toEqual(confirmed);
  expect(reader.consumer.connected).toBe(true);
});
