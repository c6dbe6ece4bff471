import type { Bus } from "../../lib/events/bus.ts";

/** A bus that is away for as long as anyone waits for it. */
export const awayBus: Bus = {
  send: (_topic, _messages, signal) => untilAborted(signal),
  consume: () => ({ connected: false, lag: undefined, leave: async () => undefined }),
  seek: (_options, signal) => untilAborted(signal),
  ensureTopics: (_topics, signal) => untilAborted(signal),
  retentionMs: (_topic, signal) => untilAborted(signal),
  close: async () => undefined,
};

function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
