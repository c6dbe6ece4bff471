import { groups } from "../../../lib/events/topics.ts";
import type { Noun } from "../command.ts";

const environment = "Environment: KAFKA_BROKERS and the other variables of Kafka.";

/** The topics that events travel on. */
export const topic: Noun = {
  name: "topic",
  alias: "topics",
  summary: "the topics that events travel on",
  verbs: [
    {
      name: "create",
      summary: "make the topics that are missing, and check the others",
      options: [{ name: "check", help: "only check" }],
      details: environment,
      run: async (input, { env }) => (await work()).ensureTopics(input.flag("check"), env),
    },
    {
      name: "check",
      summary: "say what differs from the configuration; change nothing",
      details: environment,
      run: async (_, { env }) => (await work()).ensureTopics(true, env),
    },
  ],
};

/** What consumers could not apply. */
export const deadLetter: Noun = {
  name: "dead-letter",
  alias: "dead-letters",
  summary: "events that a consumer could not apply",
  verbs: [
    {
      name: "replay",
      summary: "put them back onto their topic, where every group meets them again",
      options: [
        { name: "group", value: "group", help: `whose: ${Object.keys(groups).join(", ")}` },
        { name: "timeout", value: "seconds", help: "how long it may take; 3600 unless given" },
      ],
      details: `Those that know an event leave it. A second call begins where the first ended. Ends when nothing more comes.\n${environment}`,
      run: async (input, cli) => (await work()).replay(input, cli),
    },
  ],
};

/** Kafka's client is loaded by those alone who need it. */
function work() {
  return import("./topic-work.ts");
}
