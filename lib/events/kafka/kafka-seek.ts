import type { Consumer, Kafka } from "kafkajs";
import { withLimit } from "../../runtime/with-limit.ts";
import type { SeekOptions } from "../bus.ts";
import { administer } from "./kafka-admin.ts";

const disconnectTimeoutMs = 2000;
const consumerConfig = {
  sessionTimeout: 6000,
  heartbeatInterval: 1000,
  maxWaitTimeInMs: 100,
  allowAutoTopicCreation: false,
};

/**
 * Moves a group to the first messages appended at or after an instant: joins it as its only member, which keeps others
 * out meanwhile, and commits. (The same of kafkajs' admin waits 5 s and does not see a member that comes in between.)
 * Throws when the group has members, or when a broker or the topic is not there.
 */
export async function seekGroup(client: Kafka, options: SeekOptions, signal: AbortSignal): Promise<void> {
  const { topic, group, timestampMs } = options;
  const places = await administer(client, signal, (admin) =>
    admin.fetchTopicOffsetsByTimestamp(topic, Math.max(0, timestampMs)),
  );
  const consumer = client.consumer({ ...consumerConfig, groupId: group });
  const work = commitAlone(consumer, options, places).finally(() =>
    withLimit(consumer.disconnect(), { timeoutMs: disconnectTimeoutMs }).catch(() => undefined),
  );
  await withLimit(work, { signal });
}

async function commitAlone(
  consumer: Consumer,
  { topic, group }: SeekOptions,
  places: readonly { readonly partition: number; readonly offset: string }[],
): Promise<void> {
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const { state } = await consumer.describeGroup();
  const refusal = new Error(`the group ${group} has members; stop them first`);
  if (state !== "Empty" && state !== "Dead") throw refusal;
  const joined = new Promise<void>((resolve, reject) => {
    consumer.on(consumer.events.GROUP_JOIN, () => resolve());
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
  });
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: async () => undefined });
  await joined;
  if ((await consumer.describeGroup()).members.length !== 1) throw refusal;
  await consumer.commitOffsets(places.map(({ partition, offset }) => ({ topic, partition, offset })));
}
