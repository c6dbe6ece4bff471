/** Where the time comes from; passed in wherever it matters so that tests can set it. */
export interface Clock {
  /** Wall-clock time, milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Monotonic time in milliseconds, for measuring durations. */
  monotonicMs(): number;
}

/** The machine's own clocks. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};
