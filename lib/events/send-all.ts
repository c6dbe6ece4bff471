import type { OutgoingMessage } from "./bus.ts";
import { SendQueue, type SendQueueOptions } from "./send-queue.ts";

/**
 * Sends messages until each is durable or refused for good, or the signal fires. Resolves with what became of each, in
 * their order: undefined when it is durable, a PublishError when it never will be, else why it was given up.
 */
export async function sendAll(
  options: Pick<SendQueueOptions, "bus" | "topic" | "log">,
  messages: readonly OutgoingMessage[],
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const queue = new SendQueue(options);
  const queued = messages.map((message) => queue.add(message));
  const giveUp = () => {
    for (const each of queued) each.giveUp(signal.reason);
  };
  if (signal.aborted) giveUp();
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    const outcomes = await Promise.allSettled(queued.map(({ confirmed }) => confirmed));
    return outcomes.map((outcome) => (outcome.status === "fulfilled" ? undefined : outcome.reason));
  } finally {
    signal.removeEventListener("abort", giveUp);
    queue.close();
  }
}
