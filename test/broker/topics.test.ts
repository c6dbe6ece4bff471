import { execFile } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { inheritedEnvironment } from "../../commands/stack/child.ts";
import { deadLetterTopicOf, generationEventsTopic } from "../../lib/events/topics.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { kafkaUsers } from "../support/kafka/kafka-properties.ts";
import { kafkaTimeoutMs } from "../support/kafka/kafka-stage.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const script = new URL("../../commands/topics.ts", import.meta.url).pathname;

function topics(environment: NodeJS.ProcessEnv, ...args: string[]) {
  const env = { ...inheritedEnvironment(), ...environment };
  const nodeArgs = [script, ...args];
  return new Promise<{ code: unknown; out: string; error: string }>((resolve) => {
    execFile(process.execPath, nodeArgs, { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, out, error });
    });
  });
}

/** What is said of all topics, one after another. */
function lines(text: string): string {
  return [generationEventsTopic, deadLetterTopicOf(generationEventsTopic)]
    .map((name) => `${name}: ${text}\n`)
    .join("");
}

describe("with a broker", () => {
  let broker: KafkaBroker;
  let plain: { KAFKA_BROKERS: string; KAFKA_PARTITIONS: string };

  beforeAll(async () => {
    if (kafkaUnavailable() !== undefined) return;
    broker = await startKafkaBroker({ secured: true });
    plain = { KAFKA_BROKERS: broker.brokers.join(), KAFKA_PARTITIONS: "2" };
  });

  beforeEach((context) => needKafka(context));

  afterAll(() => broker?.stop());

  test("topics are made and grow as configured, and what differs is told; a check changes nothing", async () => {
    const differs = "error: topics are not as configured; change them, or the configuration\n";
    expect(await topics(plain, "--check")).toEqual({
      code: 1,
      out: lines("it does not exist"),
      error: differs,
    });
    expect(await topics(plain)).toEqual({ code: 0, out: lines("made"), error: "" });
    expect(await topics(plain)).toEqual({ code: 0, out: lines("as configured"), error: "" });
    const more = { ...plain, KAFKA_PARTITIONS: "3" };
    expect(await topics(more, "--check")).toEqual({
      code: 1,
      out: lines("it has 2 partitions, not 3"),
      error: differs,
    });
    expect(await topics(more)).toEqual({ code: 0, out: lines("as configured"), error: "" });
    expect(await topics({ ...plain, KAFKA_REPLICATION: "3", KAFKA_RETENTION_DAYS: "1" })).toEqual({
      code: 1,
      out: lines(
        [
          "it has 3 partitions, not 2",
          "it has 1 copies of a partition, not 3",
          "its retention.ms is 2592000000, not 86400000",
          "its min.insync.replicas is 1, not 2",
        ].join("; "),
      ),
      error: differs,
    });
  });

  test("TLS trusts what NODE_EXTRA_CA_CERTS adds, with a name and a password on top", async () => {
    const { tls = [], saslTls = [], certificateFile = "" } = broker.secured ?? {};
    const trusting = { KAFKA_SSL: "true", NODE_EXTRA_CA_CERTS: certificateFile, KAFKA_PARTITIONS: "4" };
    await topics({ ...plain, KAFKA_PARTITIONS: "4" });
    const overTls = await topics({ ...trusting, KAFKA_BROKERS: tls.join() });
    expect(overTls).toEqual({ code: 0, out: lines("as configured"), error: "" });
    const sasl = {
      KAFKA_SASL_MECHANISM: "scram-sha-512",
      KAFKA_USERNAME: "service",
      KAFKA_PASSWORD: kafkaUsers.service,
    };
    const overBoth = await topics({ ...trusting, ...sasl, KAFKA_BROKERS: saslTls.join() });
    expect(overBoth).toEqual(overTls);
    const distrusting = await topics({ KAFKA_SSL: "true", KAFKA_BROKERS: tls.join() });
    expect(distrusting).toMatchObject({ code: 5, out: "" });
    expect(distrusting.error).toContain(
      "error: Kafka can't be used: Connection error: self-signed certificate",
    );
  });
});

test.for([
  [5, { KAFKA_BROKERS: "localhost:1" }, /^error: Kafka can't be used: Connection error: .*ECONNREFUSED.*\n$/],
  [2, {}, /^error: configuration: KAFKA_BROKERS is required\n$/],
  [
    2,
    { KAFKA_BROKERS: "localhost:1", KAFKA_PASSWORD: "hunter2" },
    /^error: configuration: KAFKA_SASL_MECHANISM is required with KAFKA_PASSWORD\n$/,
  ],
] as const)("exits with %i on %o, with one clear line", async ([exit, environment, line]) => {
  const { code, out, error } = await topics(environment);
  expect([code, out]).toEqual([exit, ""]);
  expect(error).toMatch(line);
});

test("an unknown option is refused", async () => {
  const { code, error } = await topics({ KAFKA_BROKERS: "localhost:1" }, "--chek");
  expect(code).toBe(2);
  expect(error).toMatch(/^error: .*--chek.*\n$/);
});
