import { type Clock, systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import { withLimit } from "../runtime/with-limit.ts";

interface CachedReadOptions {
  /** What is read, for the log. */
  readonly name: string;
  readonly log: Log;
  readonly clock?: Clock;
  /** Longest wait for a reading, milliseconds; 2,000 unless given. */
  readonly timeoutMs?: number;
}

/** How long a reading, or a failure, stands for new ones. */
const keepMs = 5000;

/**
 * Reads at most once in 5 s and never twice at a time, however many ask. Gives undefined while the reading fails
 * or takes longer than `timeoutMs`, which is logged once until it works again.
 */
export function cachedRead<T>(
  read: () => Promise<T>,
  { name, log, clock = systemClock, timeoutMs = 2000 }: CachedReadOptions,
): () => Promise<T | undefined> {
  let value: T | undefined;
  let untilMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | undefined;
  let failing = false;
  const keep = (read: T | undefined, error?: unknown) => {
    value = read;
    untilMs = clock.monotonicMs() + keepMs;
    const failed = read === undefined;
    if (failed && !failing) log.warn({ err: error, figures: name }, "figures can't be read");
    failing = failed;
  };
  const start = async () => {
    try {
      keep(await read());
    } catch (thrown) {
      keep(undefined, thrown);
    } finally {
      reading = undefined;
    }
  };
  return async () => {
    if (clock.monotonicMs() < untilMs) return value;
    reading ??= start();
    return withLimit(reading, { timeoutMs }).then(
      () => value,
      () => undefined,
    );
  };
}
