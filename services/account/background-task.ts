import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../lib/runtime/log.ts";

/** Work that is done again and again beside the calls. */
export interface BackgroundTaskOptions {
  /** What it does, for the log. */
  readonly name: string;
  /** Does a bounded part of the work and says whether there may be more at once. */
  run(signal: AbortSignal): Promise<boolean>;
  /** Pause when there is nothing more to do, and after a failure, milliseconds. */
  readonly pauseMs: number;
  readonly log: Log;
}

/** A running task. */
export interface BackgroundTask {
  /** Resolves once the part under way has ended. */
  stop(): Promise<void>;
}

/** Starts a task. It goes on after failures, of which the first in a row is logged. */
export function startBackgroundTask({ name, run, pauseMs, log }: BackgroundTaskOptions): BackgroundTask {
  const stopping = new AbortController();
  const { signal } = stopping;
  const work = async () => {
    let failing = false;
    while (!signal.aborted) {
      let hasMore = false;
      try {
        hasMore = await run(signal);
        if (failing) log.info({ task: name }, "background task works again");
        failing = false;
      } catch (thrown) {
        if (signal.aborted) return;
        if (!failing) log.warn({ err: thrown, task: name }, "background task failed and will go on");
        failing = true;
      }
      if (!hasMore) await delay(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  };
  const working = work();
  return {
    stop() {
      stopping.abort();
      return working;
    },
  };
}
