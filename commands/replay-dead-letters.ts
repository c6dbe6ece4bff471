/**
 * Puts the messages that a group quarantined back onto their topic, once what kept it from applying them is mended.
 * Prints what it did, and exits 1 when some were quarantined again or Kafka can't be used.
 */
import { createKafkaBus } from "../lib/events/kafka/kafka-bus.ts";
import { kafkaConnection, kafkaSpec } from "../lib/events/kafka/kafka-config.ts";
import { type ReplayResult, replayDeadLetters } from "../lib/events/replay-dead-letters.ts";
import { generationEventsTopic, groups } from "../lib/events/topics.ts";
import { readConfig } from "../lib/runtime/config.ts";
import { createLog } from "../lib/runtime/log.ts";
import { StartError } from "../lib/runtime/start-error.ts";
import { failureLine, readOptions, runCommand } from "./command-line.ts";

const usage = `usage: npm run replay-dead-letters -- --group <${Object.keys(groups).join("|")}> [--timeout <seconds>]

Puts what the group could not apply back onto its topic, where every group meets it again; those that know it leave it.
A second call begins where the first ended. Ends when nothing more comes, after 3,600 seconds at the latest unless
another time is given; what is left then is for the next call. Environment: KAFKA_BROKERS and the other variables of
Kafka.`;

const options = {
  group: { type: "string" },
  timeout: { type: "string", default: "3600" },
  help: { type: "boolean", default: false },
} as const;

await runCommand(() => {
  const asked = readOptions(options);
  return asked.help ? console.log(usage) : run(groupOf(asked.group), secondsOf(asked.timeout));
}, describe);

async function run(group: string, seconds: number): Promise<number> {
  const log = createLog({ name: "replay-dead-letters", level: "info" });
  const bus = createKafkaBus({
    connection: kafkaConnection(readConfig(kafkaSpec)),
    clientId: "replay-dead-letters",
    log,
  });
  const signal = AbortSignal.timeout(seconds * 1000);
  const result = await replayDeadLetters({ bus, topic: generationEventsTopic, group, log, signal });
  await bus.close();
  console.log(resultLine(result));
  return result.quarantinedAgain ? 1 : 0;
}

function resultLine({ replayed, unusable, quarantinedAgain }: ReplayResult): string {
  const again = quarantinedAgain ? "; some were quarantined again and wait for the next call" : "";
  return `replayed ${replayed}, unusable ${unusable}${again}`;
}

function groupOf(name: string | undefined): string {
  const found = Object.entries(groups).find(([known]) => known === name);
  if (found === undefined) throw new StartError("--group is required: account, usage or destination");
  return found[1];
}

function secondsOf(text: string): number {
  if (!/^\d{1,6}$/.test(text) || text === "0") throw new StartError("--timeout must be seconds, at least 1");
  return Number(text);
}

function describe(thrown: unknown): string {
  if (thrown instanceof Error && thrown.name === "TimeoutError") return "error: the time is over";
  if (thrown instanceof Error && thrown.name.startsWith("KafkaJS"))
    return `error: Kafka can't be used: ${thrown.message}`;
  return failureLine(thrown);
}
