import type { Bus, TopicSettings, TopicState } from "../bus.ts";
import { administer, seekGroup } from "./kafka-admin.ts";
import { createKafkaClient, type KafkaClientOptions } from "./kafka-client.ts";
import { KafkaGroupMember } from "./kafka-group-member.ts";
import { KafkaSender } from "./kafka-sender.ts";
import { checkTopic, ensureTopic, topicRetentionMs } from "./kafka-topics.ts";

/** How to open a bus on Kafka. */
export interface KafkaBusOptions extends KafkaClientOptions {
  /** How long after its last sign of life a consumer is taken for dead; 10 s unless given. Brokers allow no less than 6. */
  readonly sessionTimeoutMs?: number;
}

const defaultSessionTimeoutMs = 10_000;

/** A bus on Kafka, whose topics an operator may want to look at without a change. */
export interface KafkaBus extends Bus {
  /** What `ensureTopics` reports, without making or changing anything: a topic that is missing is a difference. */
  checkTopics(topics: readonly TopicSettings[], signal: AbortSignal): Promise<readonly TopicState[]>;
}

/** A bus on a Kafka cluster. Nothing is connected before it is used, and brokers may be away at any time. */
export function createKafkaBus(options: KafkaBusOptions): KafkaBus {
  const { log, sessionTimeoutMs = defaultSessionTimeoutMs } = options;
  const openClient = (own: Partial<KafkaClientOptions> = {}) => createKafkaClient({ ...options, ...own });
  const client = openClient();
  const sender = new KafkaSender(client);
  return {
    system: "kafka",
    send: (topic, messages, signal) => sender.send(topic, messages, signal),
    consume: (consume) => new KafkaGroupMember({ openClient, consume, sessionTimeoutMs, log }),
    seek: (seek, signal) => seekGroup(openClient(), seek, signal),
    ensureTopics: (topics, signal) =>
      administer(client, signal, (admin) => Array.fromAsync(topics, (topic) => ensureTopic(admin, topic))),
    checkTopics: (topics, signal) =>
      administer(client, signal, (admin) => Array.fromAsync(topics, (topic) => checkTopic(admin, topic))),
    retentionMs: (topic, signal) => administer(client, signal, (admin) => topicRetentionMs(admin, topic)),
    close: () => sender.close(),
  };
}
