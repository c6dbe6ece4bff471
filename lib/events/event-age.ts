const dayMs = 86_400_000;

/**
 * How old an event may be to be applied, milliseconds. What would distinguish a copy of an older one from a new one may
 * be gone: a store remembers events for `retentionDays`, and a day of them goes to clocks that differ.
 */
export function maxEventAgeMs(retentionDays: number): number {
  return (retentionDays - 1) * dayMs;
}
