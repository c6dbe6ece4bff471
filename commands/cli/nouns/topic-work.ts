import type { TopicState } from "../../../lib/events/bus.ts";
import { createKafkaBus } from "../../../lib/events/kafka/kafka-bus.ts";
import {
  kafkaConnection,
  kafkaSpec,
  topicLayout,
  topicSpec,
} from "../../../lib/events/kafka/kafka-config.ts";
import { replayDeadLetters } from "../../../lib/events/replay-dead-letters.ts";
import { allTopics, generationEventsTopic, groups } from "../../../lib/events/topics.ts";
import { readConfig } from "../../../lib/runtime/config.ts";
import { createLog, silentLog } from "../../../lib/runtime/log.ts";
import type { Input } from "../command.ts";
import type { Cli } from "../connect.ts";
import { wrongUsage } from "../failure.ts";
import type { Output } from "../output.ts";

const timeoutMs = 60_000;

/** Makes the topics that are missing, unless it only checks, and says what differs. */
export async function ensureTopics(check: boolean, env: NodeJS.ProcessEnv): Promise<Output> {
  const config = readConfig({ ...kafkaSpec, ...topicSpec }, env);
  const bus = createKafkaBus({ connection: kafkaConnection(config), clientId: "topics", log: silentLog });
  const topics = allTopics(topicLayout(config));
  const signal = AbortSignal.timeout(timeoutMs);
  const states = await (check ? bus.checkTopics(topics, signal) : bus.ensureTopics(topics, signal));
  await bus.close();
  const isWrong = states.some(({ differences }) => differences.length > 0);
  return {
    lines: states.map(stateLine),
    data: states.map(({ name, created, differences }) => ({ name, created, differences })),
    notes: isWrong ? ["error: topics are not as configured; change them, or the configuration"] : [],
    isWrong,
  };
}

function stateLine({ name, created, differences }: TopicState): string {
  if (differences.length > 0) return `${name}: ${differences.join("; ")}`;
  return `${name}: ${created ? "made" : "as configured"}`;
}

/** Puts back onto its topic what a group could not apply. Throws CommandFailure. */
export async function replay(input: Input, { env, terminal }: Cli): Promise<Output> {
  const found = Object.entries(groups).find(([name]) => name === input.text("group"));
  if (found === undefined) throw wrongUsage(`--group is required: ${Object.keys(groups).join(", ")}`);
  const [, group] = found;
  const seconds = input.count("timeout", 999_999, 3600) ?? 0;
  const connection = kafkaConnection(readConfig(kafkaSpec, env));
  const log = createLog({
    name: "replay-dead-letters",
    level: "info",
    destination: { write: (line) => terminal.error(line) },
  });
  const bus = createKafkaBus({ connection, clientId: "replay-dead-letters", log });
  const signal = AbortSignal.timeout(seconds * 1000);
  const data = await replayDeadLetters({ bus, topic: generationEventsTopic, group, log, signal });
  await bus.close();
  const again = data.quarantinedAgain ? "; some were quarantined again and wait for the next call" : "";
  const lines = [`replayed ${data.replayed}, unusable ${data.unusable}${again}`];
  return { lines, data, isWrong: data.quarantinedAgain };
}
