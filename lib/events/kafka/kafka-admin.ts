import type { Admin, Kafka } from "kafkajs";
import { withLimit } from "../../runtime/with-limit.ts";

const disconnectTimeoutMs = 2000;

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
