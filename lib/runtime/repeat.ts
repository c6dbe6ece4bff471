import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "./log.ts";

interface RepeatOptions {
  /** What it does, for the log. */
  readonly name: string;
  /** Does a bounded part of the work and says whether there may be more at once. */
  run(signal: AbortSignal): Promise<boolean>;
  /** Pause when there is nothing more to do, and after a failure, milliseconds. */
  readonly pauseMs: number;
  /** Pause while there is more; none unless given. */
  readonly stepPauseMs?: number;
  readonly log: Log;
}

/** Work that goes on. */
export interface Repeating {
  /** Resolves once the part under way has ended. */
  stop(): Promise<void>;
}

/** Begins, and goes on after failures, of which the first in a row is logged. No part begins before the last has ended. */
export function repeat({ name, run, pauseMs, stepPauseMs = 0, log }: RepeatOptions): Repeating {
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
      const restMs = hasMore ? stepPauseMs : pauseMs;
      if (restMs > 0) await delay(restMs, undefined, { signal, ref: false }).catch(() => undefined);
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
