import type { DeliveryLimits } from "./delivery-limits.ts";

/** What decides about the pause after a failure. */
export interface BackOff {
  readonly limits: Pick<DeliveryLimits, "firstRetryMs" | "maxRetryMs" | "maxRetryAfterMs">;
  /** How many attempts failed in a row, this one included. */
  readonly failures: number;
  /** How long the receiver asked to wait, milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** From 0 to below 1. */
  random(): number;
}

/**
 * How long to wait after a failure, milliseconds: twice as long after each, up to a bound, of which half is left to
 * chance, so that many receivers that fail at once are not all tried at once; never less than the receiver asked for,
 * within reason.
 */
export function retryDelayMs({ limits, failures, retryAfterMs = 0, random }: BackOff): number {
  const doubled = limits.firstRetryMs * 2 ** Math.min(failures - 1, 30);
  const ownMs = Math.min(doubled, limits.maxRetryMs) * (0.5 + random() / 2);
  return Math.round(Math.max(ownMs, Math.min(retryAfterMs, limits.maxRetryAfterMs)));
}
