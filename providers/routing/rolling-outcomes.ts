/** How many attempts ended within a span of time, and how many of them by a failure of their endpoint. */
export interface OutcomeCount {
  readonly ended: number;
  readonly failed: number;
}

/** Longest span that can be asked for, milliseconds. */
export const longestSpanMs = 30 * 60_000;
const slotMs = 5_000;
const slotCount = longestSpanMs / slotMs;

/** Counts how attempts ended, in slots of 5 s over the last half hour. Times are of one monotonic clock. */
export class RollingOutcomes {
  readonly #ended = new Uint32Array(slotCount);
  readonly #failed = new Uint32Array(slotCount);
  #newest = -Infinity;

  /** An attempt ended now. */
  add(failed: boolean, nowMs: number): void {
    const slot = Math.floor(nowMs / slotMs);
    this.#clearUpTo(slot);
    const at = slot % slotCount;
    this.#ended[at] = (this.#ended[at] ?? 0) + 1;
    if (failed) this.#failed[at] = (this.#failed[at] ?? 0) + 1;
  }

  /** What ended in the last `spanMs`, the slot included that it begins in. */
  count(spanMs: number, nowMs: number): OutcomeCount {
    const now = Math.floor(nowMs / slotMs);
    const spanSlots = Math.min(Math.ceil(spanMs / slotMs) + 1, slotCount);
    let ended = 0;
    let failed = 0;
    for (
      let slot = Math.max(now - spanSlots + 1, this.#newest - slotCount + 1, 0);
      slot <= this.#newest;
      slot++
    ) {
      ended += this.#ended[slot % slotCount] ?? 0;
      failed += this.#failed[slot % slotCount] ?? 0;
    }
    return { ended, failed };
  }

  #clearUpTo(slot: number): void {
    for (let stale = Math.max(this.#newest + 1, slot - slotCount + 1, 0); stale <= slot; stale++) {
      this.#ended[stale % slotCount] = 0;
      this.#failed[stale % slotCount] = 0;
    }
    this.#newest = Math.max(this.#newest, slot);
  }
}
