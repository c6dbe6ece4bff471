/** How much is delivered at once, how long it may take, and when it is given up. */
export interface DeliveryLimits {
  /** Most deliveries under way in a process to destinations whose last one worked at once; each has at most one. */
  readonly maxHealthyInFlight: number;
  /** Most to the others, which fail or are slow: room of their own, so that neither kind crowds out the other. */
  readonly maxFailingInFlight: number;
  /** An attempt that takes longer is slow, milliseconds, even if it works. */
  readonly slowAfterMs: number;
  /** Most bytes of the events of a batch, as stored; a single larger event goes alone. */
  readonly maxBatchBytes: number;
  /** Shortest time from one batch of a destination to the next, milliseconds, unless a full one waits. */
  readonly batchIntervalMs: number;
  /** Longest attempt, milliseconds. */
  readonly attemptTimeoutMs: number;
  /** After which a batch that nobody reported about is another's to send, milliseconds. Longer than an attempt. */
  readonly leaseMs: number;
  /** Longest time until work is found that other processes left, milliseconds; a process's own wakes it. */
  readonly pollMs: number;
  /** Pause after the first failure, milliseconds; it doubles with each further one. */
  readonly firstRetryMs: number;
  /** Longest such pause, milliseconds. */
  readonly maxRetryMs: number;
  /** Longest that a receiver may ask to wait, milliseconds. */
  readonly maxRetryAfterMs: number;
  /** How long an event may wait before it is given up, milliseconds. */
  readonly giveUpAfterMs: number;
  /** A destination is paused when nothing was taken for so long, milliseconds … */
  readonly pauseAfterMs: number;
  /** … and so many attempts failed meanwhile. */
  readonly pauseAfterFailures: number;
  /** How many attempts of a destination its log keeps. */
  readonly keptDeliveries: number;
  /** How long it keeps them, milliseconds. */
  readonly keptDeliveriesMs: number;
  /** How often what is too old is looked for, milliseconds. */
  readonly housekeepingMs: number;
}

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The limits of a service that runs. */
export const defaultDeliveryLimits: DeliveryLimits = {
  maxHealthyInFlight: 96,
  maxFailingInFlight: 32,
  slowAfterMs: 2 * secondMs,
  maxBatchBytes: 1 << 20,
  batchIntervalMs: 300,
  attemptTimeoutMs: 10 * secondMs,
  leaseMs: 15 * secondMs,
  pollMs: 5 * secondMs,
  firstRetryMs: secondMs,
  maxRetryMs: 5 * minuteMs,
  maxRetryAfterMs: hourMs,
  giveUpAfterMs: dayMs,
  pauseAfterMs: 6 * hourMs,
  pauseAfterFailures: 6,
  keptDeliveries: 1000,
  keptDeliveriesMs: 7 * dayMs,
  housekeepingMs: minuteMs,
};
