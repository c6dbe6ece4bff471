import kafkajs, { type Admin, type ITopicMetadata } from "kafkajs";
import type { TopicSettings, TopicState } from "../bus.ts";
import { RetryPause } from "../retry-pause.ts";
import { kafkaErrorTypes } from "./kafka-client.ts";

// Node finds no export of this name in a package of CommonJS.
const { ConfigResourceTypes } = kafkajs;
const visibleWithinMs = 10_000;

/** Makes a topic, or more partitions of it, and reports what else differs. */
export async function ensureTopic(admin: Admin, settings: TopicSettings): Promise<TopicState> {
  const { name, partitions } = settings;
  const before = await describeTopic(admin, name);
  if (before === undefined) {
    const created = await createTopic(admin, settings);
    const topic = await waitForPartitions(admin, name, created ? partitions : 1);
    return { name, created, differences: created ? [] : await differencesOf(admin, settings, topic) };
  }
  if (before.partitions.length >= partitions) {
    return { name, created: false, differences: await differencesOf(admin, settings, before) };
  }
  await admin.createPartitions({ topicPartitions: [{ topic: name, count: partitions }] });
  const topic = await waitForPartitions(admin, name, partitions);
  return { name, created: false, differences: await differencesOf(admin, settings, topic) };
}

/** Reports what differs and changes nothing. */
export async function checkTopic(admin: Admin, settings: TopicSettings): Promise<TopicState> {
  const { name } = settings;
  const topic = await describeTopic(admin, name);
  return { name, created: false, differences: await differencesOf(admin, settings, topic) };
}

/** How long a topic keeps messages, milliseconds; Infinity for ever. Throws when there is no such topic. */
export async function topicRetentionMs(admin: Admin, topic: string): Promise<number> {
  if ((await describeTopic(admin, topic)) === undefined) throw new Error(`there is no topic ${topic}`);
  const retentionMs = Number((await topicConfig(admin, topic)).get("retention.ms"));
  if (Number.isNaN(retentionMs)) throw new Error(`Kafka does not tell how long ${topic} keeps messages`);
  return retentionMs < 0 ? Number.POSITIVE_INFINITY : retentionMs;
}

/** False when another has made it in the meantime. */
async function createTopic(admin: Admin, settings: TopicSettings): Promise<boolean> {
  const { name, partitions, replication } = settings;
  const configEntries = Object.entries(configOf(settings)).map(([key, value]) => ({ name: key, value }));
  return admin.createTopics({
    waitForLeaders: false,
    topics: [{ topic: name, numPartitions: partitions, replicationFactor: replication, configEntries }],
  });
}

/**
 * What the bus relies on. Two copies are written before a message counts as durable; nothing goes by size or by key but
 * all by age; and instants are those of the brokers, so that they never go back.
 */
function configOf({ retentionMs, replication }: TopicSettings): Readonly<Record<string, string>> {
  return {
    "retention.ms": Number.isFinite(retentionMs) ? String(retentionMs) : "-1",
    "retention.bytes": "-1",
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": String(Math.min(2, replication)),
    "unclean.leader.election.enable": "false",
  };
}

/** What was just made is not known to every broker at once. */
async function waitForPartitions(admin: Admin, name: string, partitions: number): Promise<ITopicMetadata> {
  const pause = new RetryPause(20, 500);
  const deadlineMs = performance.now() + visibleWithinMs;
  for (;;) {
    const topic = await describeTopic(admin, name);
    if (topic !== undefined && topic.partitions.length >= partitions) return topic;
    if (performance.now() > deadlineMs) throw new Error(`Kafka made ${name} but does not show it`);
    await pause.wait();
  }
}

async function describeTopic(admin: Admin, name: string): Promise<ITopicMetadata | undefined> {
  try {
    const { topics } = await admin.fetchTopicMetadata({ topics: [name] });
    return topics.find((topic) => topic.name === name);
  } catch (thrown) {
    if (kafkaErrorTypes(thrown).includes("UNKNOWN_TOPIC_OR_PARTITION")) return undefined;
    throw thrown;
  }
}

async function topicConfig(admin: Admin, name: string): Promise<ReadonlyMap<string, string>> {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name }];
  const described = await admin.describeConfigs({ resources, includeSynonyms: false });
  const entries = described.resources.flatMap(({ configEntries }) => configEntries);
  return new Map(entries.map(({ configName, configValue }) => [configName, configValue]));
}

async function differencesOf(
  admin: Admin,
  settings: TopicSettings,
  topic: ITopicMetadata | undefined,
): Promise<readonly string[]> {
  if (topic === undefined) return ["it does not exist"];
  const differences: string[] = [];
  const { partitions, replication } = settings;
  const count = topic.partitions.length;
  if (count !== partitions) differences.push(`it has ${count} partitions, not ${partitions}`);
  const copies = Math.min(...topic.partitions.map(({ replicas }) => replicas.length));
  if (copies !== replication) differences.push(`it has ${copies} copies of a partition, not ${replication}`);
  const config = await topicConfig(admin, settings.name);
  for (const [key, wanted] of Object.entries(configOf(settings))) {
    const value = config.get(key);
    const isEnough = key === "min.insync.replicas" && Number(value) > Number(wanted);
    if (value !== wanted && !isEnough) differences.push(`its ${key} is ${value ?? "unknown"}, not ${wanted}`);
  }
  return differences;
}
