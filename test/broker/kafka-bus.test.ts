import { randomUUID } from "node:crypto";
import { beforeEach } from "vitest";
import { describeBus } from "../../lib/events/bus.suite.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { needKafka, testKafka } from "../support/kafka/kafka.ts";
import { kafkaUnavailable } from "../support/kafka/kafka-broker.ts";

beforeEach((context) => needKafka(context));

const open = async () => {
  const { brokers } = kafkaUnavailable() === undefined ? await testKafka() : { brokers: [] };
  const connection = { brokers, ssl: false };
  return {
    open: () => createKafkaBus({ connection, clientId: `test-${randomUUID()}`, log: silentLog }),
    close: async () => undefined,
  };
};

describeBus("the bus on Kafka", open, { partitions: true });
