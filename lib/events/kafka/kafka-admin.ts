import type { Admin, Consumer, Kafka } from "kafkajs";
import { withLimit } from "../../runtime/with-limit.ts";
import type { SeekOptions } from "../bus.ts";

const disconnectTimeoutMs = 2000;
const loneConsumer = {
  sessionTimeout: 6000,
  heartbeatInterval: 1000,
  maxWaitTimeInMs: 100,
  allowAutoTopicCreation: false,
};

/** Connects as an administrator for one task. Rejects when no broker answers, and as soon as the signal fires. */
export function administer<T>(
  client: Kafka,
  signal: AbortSignal,
  task: (admin: Admin) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  return withLimit(runTask(client, task), { signal });
}

async function runTask<T>(client: Kafka, task: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = client.admin();
  try {
    await admin.connect();
    return await task(admin);
  } finally {
    await withLimit(admin.disconnect(), { timeoutMs: disconnectTimeoutMs }).catch(() => undefined);
  }
}

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
  const consumer = client.consumer({ ...loneConsumer, groupId: group });
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
