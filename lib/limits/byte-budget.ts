/** What one of a caller's bodies holds of a budget. */
export interface ByteShare {
  /** Takes room at once; false, and nothing is taken, where there is none. */
  take(bytes: number): boolean;
  /** Takes room when there is some, unless the share is released before; one at a time. */
  takeLater(bytes: number, taken: () => void): void;
  /** Gives so many of the bytes that were taken back. */
  giveBack(bytes: number): void;
  /** Gives all of it back; nothing is to be taken afterwards. */
  release(): void;
}

/**
 * Bounds the bytes that are held at one time for all callers, so that none of them keeps the others out.
 *
 * 1. A caller may hold as much as is still free, not more: one alone gets half, two a third each. Whoever comes next
 *    always finds room.
 * 2. Those who wait get what becomes free in the order in which they came, unless it is more than they may hold.
 */
export class ByteBudget {
  #maxBytes: number;
  readonly #held = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Has room for so many bytes at least. */
  growTo(maxBytes: number): void {
    this.#maxBytes = Math.max(this.#maxBytes, maxBytes);
  }

  /** Bytes taken now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** An empty share that counts for a caller. */
  open(caller: string): ByteShare {
    let held = 0;
    let waiting: Waiting | undefined;
    const giveBack = (bytes: number) => {
      if (bytes === 0) return;
      held -= bytes;
      this.#add(caller, -bytes);
      this.#grantWaiting();
    };
    return {
      take: (bytes) => {
        if (!this.#fits(caller, bytes)) return false;
        this.#add(caller, bytes);
        held += bytes;
        return true;
      },
      takeLater: (bytes, taken) => {
        const granted = () => {
          held += bytes;
          waiting = undefined;
          taken();
        };
        waiting = { caller, bytes, granted };
        this.#waiting.add(waiting);
      },
      release: () => {
        if (waiting !== undefined) this.#waiting.delete(waiting);
        giveBack(held);
      },
      giveBack,
    };
  }

  #fits(caller: string, bytes: number): boolean {
    const held = this.#held.get(caller) ?? 0;
    return held + bytes <= this.#maxBytes - this.#usedBytes;
  }

  #add(caller: string, bytes: number): void {
    this.#usedBytes += bytes;
    const held = (this.#held.get(caller) ?? 0) + bytes;
    if (held === 0) this.#held.delete(caller);
    else this.#held.set(caller, held);
  }

  #grantWaiting(): void {
    for (const entry of this.#waiting) {
      if (!this.#fits(entry.caller, entry.bytes)) continue;
      this.#waiting.delete(entry);
      this.#add(entry.caller, entry.bytes);
      entry.granted();
    }
  }
}

interface Waiting {
  readonly caller: string;
  readonly bytes: number;
  readonly granted: () => void;
}
