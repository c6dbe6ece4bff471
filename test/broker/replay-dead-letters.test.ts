import { execFile } from "node:child_process";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { inheritedEnvironment } from "../../commands/stack/child.ts";
import type { Bus } from "../../lib/events/bus.ts";
import { sendDeadLetters } from "../../lib/events/dead-letter.ts";
import { createKafkaBus } from "../../lib/events/kafka/kafka-bus.ts";
import { allTopics, generationEventsTopic, groups } from "../../lib/events/topics.ts";
import { silentLog } from "../../lib/runtime/log.ts";
import { needKafka } from "../support/kafka/kafka.ts";
import { type KafkaBroker, kafkaUnavailable, startKafkaBroker } from "../support/kafka/kafka-broker.ts";
import { kafkaTimeoutMs } from "../support/kafka/kafka-stage.ts";
import { waitUntil } from "../support/wait-until.ts";

vi.setConfig({ testTimeout: kafkaTimeoutMs, hookTimeout: kafkaTimeoutMs });

const script = new URL("../../commands/replay-dead-letters.ts", import.meta.url).pathname;

function replay(environment: NodeJS.ProcessEnv, ...args: string[]) {
  const env = { ...inheritedEnvironment(), ...environment };
  const nodeArgs = [script, ...args];
  return new Promise<{ code: unknown; last: string; error: string }>((resolve) => {
    execFile(process.execPath, nodeArgs, { env }, (thrown, out, error) => {
      resolve({ code: thrown?.code ?? 0, last: out.trim().split("\n").at(-1) ?? "", error });
    });
  });
}

describe("with a broker", () => {
  let broker: KafkaBroker;
  let bus: Bus;

  beforeAll(async () => {
    if (kafkaUnavailable() !== undefined) return;
    broker = await startKafkaBroker();
    const { brokers } = broker;
    bus = createKafkaBus({ connection: { brokers, ssl: false }, clientId: "test", log: silentLog });
    const topics = allTopics({ partitions: 2, replication: 1, retentionMs: 86_400_000 });
    await bus.ensureTopics(topics, AbortSignal.timeout(kafkaTimeoutMs));
  });

  beforeEach((context) => needKafka(context));

  afterAll(async () => {
    await bus?.close();
    await broker?.stop();
  });

  test("what a group quarantined stands on its topic again, once", async () => {
    const seen: string[] = [];
    const reader = bus.consume({
      topic: generationEventsTopic,
      group: "test.reader",
      maxBatchMessages: 10,
      handle: async (batch) => void seen.push(...batch.map(({ value }) => Buffer.from(value).toString())),
    });
    const message = {
      topic: generationEventsTopic,
      partition: 0,
      offset: 0n,
      key: "account",
      value: Buffer.from("quarantined"),
      headers: {},
      appendedAtMs: Date.now(),
    };
    const letters = { bus, group: groups.usage, log: silentLog };
    await sendDeadLetters(letters, [{ message, reason: "poison" }], AbortSignal.timeout(30_000));
    const env = { KAFKA_BROKERS: broker.brokers.join() };
    expect(await replay(env, "--group", "account")).toMatchObject({
      code: 0,
      last: "replayed 0, unusable 0",
    });
    expect(await replay(env, "--group", "usage")).toMatchObject({ code: 0, last: "replayed 1, unusable 0" });
    expect(await replay(env, "--group", "usage")).toMatchObject({ code: 0, last: "replayed 0, unusable 0" });
    await waitUntil(() => seen.length > 0, { timeoutMs: 60_000 });
    expect(seen).toEqual(["quarantined"]);
    await reader.leave();
  });
});

test.each([
  [[], "error: --group is required: account, usage, destination\n"],
  [["--group", "media.usage"], "error: --group is required: account, usage, destination\n"],
  [["--group", "usage", "--timeout", "soon"], "error: --timeout must be a whole number from 1 to 999999\n"],
  [["--group", "usage"], "error: configuration: KAFKA_BROKERS is required\n"],
])("%j is refused in one line", async (args, error) => {
  expect(await replay({}, ...args)).toEqual({ code: 2, last: "", error });
});
