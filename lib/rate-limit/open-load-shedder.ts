import { type ConfigOf, intVar, millisecondsVar } from "../runtime/config.ts";
import type { LoopDelay } from "../runtime/loop-delay.ts";
import { LoadShedder } from "./load-shedder.ts";

/** What a process that generates, or passes on what was generated, can carry. */
export const loadSpec = {
  MAX_INFLIGHT_REQUESTS: intVar(1, 100_000)({ default: 256 }),
  MAX_LOOP_DELAY_MS: millisecondsVar({ default: 250 }),
} as const;

/** The shedder of a process, which all its parts share. */
export function openLoadShedder(config: ConfigOf<typeof loadSpec>, loopDelay: LoopDelay): LoadShedder {
  return new LoadShedder({
    maxInFlight: config.MAX_INFLIGHT_REQUESTS,
    maxDelayMs: config.MAX_LOOP_DELAY_MS,
    loopDelay,
  });
}
