import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { PublishError } from "../../lib/events/bus.ts";
import { createKafkaBus, type KafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import type { KafkaConnection } from "../../lib/events/kafka/kafka-config.ts";
import { createLog } from "../../lib/runtime/log.ts";
import { needKafka, type SecuredKafkaAddresses, testKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";
import { kafkaUsers } from "../support/kafka/kafka-properties.ts";
import { KafkaStage, kafkaPatienceMs, kafkaTimeoutMs, textMessage } from "../support/kafka/kafka-stage.ts";
import { sendMessages } from "../support/kafka/send-messages.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

type Mechanism = NonNullable<KafkaConnection["sasl"]>["mechanism"];

let kafka: SecuredKafkaAddresses;
let stage: KafkaStage;
let topic: string;
let lines: string[];
let buses: KafkaBus[];

beforeAll(async () => {
  if (kafkaUnavailable() !== undefined) return;
  kafka = await testKafka();
  stage = new KafkaStage(kafka.brokers);
  topic = await stage.makeTopic();
});

beforeEach((context) => {
  needKafka(context);
  lines = [];
  buses = [];
  return () => Promise.all(buses.map((bus) => bus.close()));
});

afterAll(() => stage?.close());

/** A client that keeps all that it logs in `lines`. */
function open(connection: KafkaConnection): KafkaBus {
  const write = (line: string) => void lines.push(line);
  const log = createLog({ name: "test", level: "debug", destination: { write } });
  const bus = createKafkaBus({ connection, clientId: "test", log });
  buses.push(bus);
  return bus;
}

function openAs(username: string, password: string, mechanism: Mechanism): KafkaBus {
  return open({ brokers: kafka.secured.sasl, ssl: false, sasl: { mechanism, username, password } });
}

describe("a name and a password", () => {
  test.for(["plain", "scram-sha-256", "scram-sha-512"] as const)("let in by %s", async (mechanism) => {
    const bus = openAs("service", kafkaUsers.service, mechanism);
    const key = randomUUID();
    await sendMessages(bus, topic, [textMessage(key, "let in")], AbortSignal.timeout(kafkaPatienceMs));
    const reader = stage.read(bus, { topic });
    await waitUntil(() => reader.texts()[key], { timeoutMs: kafkaPatienceMs });
    await reader.consumer.leave();
    expect(lines.join("")).not.toContain(kafkaUsers.service);
  });

  test.for(["plain", "scram-sha-512"] as const)(
    "that are wrong for %s are no fault of a message",
    async (mechanism) => {
      const bus = openAs("service", "wrong-secret", mechanism);
      const given = new AbortController();
      const sent = sendMessages(bus, topic, [textMessage("k", "v")], given.signal);
      await waitUntil(() => lines.some((line) => /takes no messages.*|authentication/i.test(line)), {
        timeoutMs: kafkaPatienceMs,
      });
      const reason = new Error("enough");
      given.abort(reason);
      await expect(sent).rejects.toBe(reason);
      await expect(bus.retentionMs(topic, AbortSignal.timeout(kafkaPatienceMs))).rejects.toThrow(
        /authentication/i,
      );
      expect(lines.join("")).not.toContain("wrong-secret");
    },
  );
});

test("who may not write is refused for good", async () => {
  const bus = openAs("guest", kafkaUsers.guest, "scram-sha-512");
  const sent = sendMessages(bus, topic, [textMessage("k", "v")], AbortSignal.timeout(kafkaPatienceMs));
  await expect(sent).rejects.toBeInstanceOf(PublishError);
  await expect(sent).rejects.toThrow("AUTHORIZATION_FAILED");
});

test("a certificate that nobody has signed is not accepted", async () => {
  const bus = open({ brokers: kafka.secured.tls, ssl: true });
  const retention = bus.retentionMs(topic, AbortSignal.timeout(kafkaPatienceMs));
  await expect(retention).rejects.toThrow("self-signed certificate");
});
