import { describe, expect, test } from "vitest";
import { ConfigError, readConfig } from "../../runtime/config.ts";
import { kafkaConnection, kafkaSpec, topicLayout, topicSpec } from "./kafka-config.ts";

const brokers = { KAFKA_BROKERS: "one.example:9092, two.example:9093" };
const read = (environment: NodeJS.ProcessEnv) => kafkaConnection(readConfig(kafkaSpec, environment));

describe("the connection to Kafka", () => {
  test("is plain unless more is set", () => {
    expect(read(brokers)).toEqual({ brokers: ["one.example:9092", "two.example:9093"], ssl: false });
  });

  test("has TLS and a name with its password", () => {
    const secured = {
      ...brokers,
      KAFKA_SSL: "true",
      KAFKA_SASL_MECHANISM: "scram-sha-512",
      KAFKA_USERNAME: "gateway",
      KAFKA_PASSWORD: "hunter2",
    };
    expect(read(secured)).toMatchObject({
      ssl: true,
      sasl: { mechanism: "scram-sha-512", username: "gateway", password: "hunter2" },
    });
  });

  test.for([
    [{}, "KAFKA_BROKERS is required"],
    [{ KAFKA_BROKERS: "one.example" }, "KAFKA_BROKERS must be host:port"],
    [{ KAFKA_BROKERS: "one.example:9092,," }, "KAFKA_BROKERS must be host:port"],
    [{ KAFKA_BROKERS: "one.example:70000" }, "KAFKA_BROKERS must be host:port"],
    [{ KAFKA_BROKERS: "kafka://one.example:9092" }, "KAFKA_BROKERS must be host:port"],
    [{ ...brokers, KAFKA_SSL: "yes" }, "KAFKA_SSL must be true or false"],
    [{ ...brokers, KAFKA_SASL_MECHANISM: "gssapi" }, "KAFKA_SASL_MECHANISM must be one of plain, scram"],
    [{ ...brokers, KAFKA_USERNAME: "gateway" }, "KAFKA_SASL_MECHANISM is required with KAFKA_USERNAME"],
    [{ ...brokers, KAFKA_SASL_MECHANISM: "plain" }, "KAFKA_USERNAME is required with KAFKA_SASL_MECHANISM"],
    [
      { ...brokers, KAFKA_SASL_MECHANISM: "plain", KAFKA_USERNAME: "gateway" },
      "KAFKA_PASSWORD is required with KAFKA_SASL_MECHANISM",
    ],
    [
      { ...brokers, KAFKA_SASL_MECHANISM: "plain", KAFKA_PASSWORD: "hunter2" },
      "KAFKA_USERNAME is required with KAFKA_SASL_MECHANISM",
    ],
  ] as const)("%o is refused: %s", ([environment, message]) => {
    expect(() => read(environment)).toThrow(ConfigError);
    expect(() => read(environment)).toThrow(message);
    expect(() => read(environment)).not.toThrow("hunter2");
  });
});

describe("the layout of topics", () => {
  test("has defaults", () => {
    expect(topicLayout(readConfig(topicSpec, {}))).toEqual({
      partitions: 12,
      replication: 1,
      retentionMs: 30 * 24 * 3_600_000,
    });
  });

  test("is as configured", () => {
    const environment = { KAFKA_PARTITIONS: "3", KAFKA_REPLICATION: "2", KAFKA_RETENTION_DAYS: "7" };
    expect(topicLayout(readConfig(topicSpec, environment))).toEqual({
      partitions: 3,
      replication: 2,
      retentionMs: 7 * 24 * 3_600_000,
    });
  });
});
