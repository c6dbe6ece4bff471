import { setTimeout as delay } from "node:timers/promises";

/** How long waitUntil waits and how often it looks, milliseconds. */
export interface WaitOptions {
  timeoutMs?: number;
  intervalMs?: number;
}

/**
 * Waits until `condition` gives something truthy and resolves with it; a condition that throws counts as not met.
 * Rejects after `timeoutMs` with what the condition last threw, if it did; unless given, that is far more than any takes:
 * the machine may have other work.
 */
export async function waitUntil<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 60_000, intervalMs = 10 }: WaitOptions = {},
): Promise<NonNullable<T>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let failure: unknown;
    try {
      const value = await condition();
      if (value) return value;
    } catch (thrown) {
      failure = thrown;
    }
    if (performance.now() >= deadline) {
      throw new Error(`condition not met within ${timeoutMs} ms: ${condition}`, { cause: failure });
    }
    await delay(intervalMs);
  }
}
