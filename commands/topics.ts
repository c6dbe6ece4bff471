/**
 * Makes the topics that are missing, as configured, and checks the others; with `--check` it changes nothing. Prints a
 * line for each topic, and exits 1 when one differs from the configuration or Kafka can't be reached.
 */
import type { TopicState } from "../lib/events/bus.ts";
import { createKafkaBus } from "../lib/events/kafka/kafka-bus.ts";
import { kafkaConnection, kafkaSpec, topicLayout, topicSpec } from "../lib/events/kafka/kafka-config.ts";
import { allTopics } from "../lib/events/topics.ts";
import { readConfig } from "../lib/runtime/config.ts";
import { silentLog } from "../lib/runtime/log.ts";
import { readOptions, runCommand } from "./command-line.ts";

const timeoutMs = 60_000;

await runCommand(async () => {
  const { check } = readOptions({ check: { type: "boolean", default: false } });
  const config = readConfig({ ...kafkaSpec, ...topicSpec });
  const bus = createKafkaBus({ connection: kafkaConnection(config), clientId: "topics", log: silentLog });
  const topics = allTopics(topicLayout(config));
  const signal = AbortSignal.timeout(timeoutMs);
  const states = await (check ? bus.checkTopics(topics, signal) : bus.ensureTopics(topics, signal));
  await bus.close();
  for (const state of states) console.log(stateLine(state));
  if (states.every(({ differences }) => differences.length === 0)) return 0;
  console.error("error: topics are not as configured; change them, or the configuration");
  return 1;
}, describe);

function stateLine({ name, created, differences }: TopicState): string {
  if (differences.length > 0) return `${name}: ${differences.join("; ")}`;
  return `${name}: ${created ? "made" : "as configured"}`;
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.name.startsWith("KafkaJS")) return `error: Kafka can't be used: ${thrown.message}`;
  if (thrown.name === "TimeoutError") return `error: Kafka has not answered within ${timeoutMs / 1000} s`;
  return `error: ${thrown.message.split("\n")[0]}`;
}
