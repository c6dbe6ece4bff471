import type { Log } from "../runtime/log.ts";
import { StartError } from "../runtime/start-error.ts";
import type { Bus } from "./bus.ts";
import { RetryPause } from "./retry-pause.ts";

interface RetentionCheck {
  readonly bus: Pick<Bus, "retentionMs">;
  readonly topic: string;
  /** Events that ended longer ago can't be distinguished from copies any more, milliseconds. */
  readonly maxAgeMs: number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const attemptTimeoutMs = 10_000;
const firstPauseMs = 200;
const longestPauseMs = 5000;

/**
 * Resolves when a topic keeps messages no longer than their consumer can recognize copies by. Waits for a bus that is
 * away, and for a topic that is not made yet. Throws StartError when the topic keeps them longer, and the signal's reason.
 */
export async function checkRetention(check: RetentionCheck): Promise<void> {
  const { topic, maxAgeMs } = check;
  const retentionMs = await readRetention(check);
  if (retentionMs <= maxAgeMs) return;
  const kept = retentionMs === Number.POSITIVE_INFINITY ? "for ever" : `${retentionMs} ms`;
  throw new StartError(
    `the topic ${topic} keeps messages ${kept}, but copies are told apart for ${maxAgeMs} ms only; ` +
      "shorten the topic's retention, or keep usage longer",
  );
}

async function readRetention({ bus, topic, log, signal }: RetentionCheck): Promise<number> {
  const pause = new RetryPause(firstPauseMs, longestPauseMs);
  for (;;) {
    signal.throwIfAborted();
    try {
      return await bus.retentionMs(topic, AbortSignal.any([signal, AbortSignal.timeout(attemptTimeoutMs)]));
    } catch (thrown) {
      signal.throwIfAborted();
      if (!pause.failing) log.warn({ err: thrown, topic }, "events can't be consumed yet");
      await pause.wait(signal);
    }
  }
}
