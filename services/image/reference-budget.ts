/**
 * Bounds the bytes of references that all requests hold at once, those on their way and those in use, fairly between
 * keys.
 *
 * 1. A byte is counted before it is kept, and until the request that holds it has ended. All together never exceed
 *    `maxBytes`; those of one key never exceed its share, half of it.
 * 2. Who finds no room waits, first come first served; a wait that only the share of its key causes holds up nobody
 *    else. Where `maxBytes` is the cause nobody overtakes, so that large pieces don't starve.
 * 3. Requests that are still loading can't lock each other out. One of them, the senior, always finds room for as much
 *    as a request may hold, once those that have loaded have ended, as they do by themselves: the others leave that
 *    much of `maxBytes` to it. It stays the senior until it has loaded or failed; then the oldest one follows. In the
 *    same way the oldest of each key is left room within the share of its key.
 */

/** What one request holds. */
export interface ReferenceShare {
  /** Whether it ever had to wait. */
  readonly waited: boolean;
  /** Resolves once there is room for so many bytes more, which count from then on. Throws the signal's reason. */
  take(bytes: number, signal: AbortSignal): Promise<void>;
  /** It takes no more; gives back all but `bytes`. */
  loaded(bytes: number): void;
  /** Gives back everything; may be called more than once. */
  release(): void;
}

/** Bounds of a ReferenceBudget, bytes. */
export interface ReferenceBudgetOptions {
  /** At least twice as much as a request may hold. */
  readonly maxBytes: number;
  /** The most that one request takes. */
  readonly maxRequestBytes: number;
}

interface Share {
  readonly key: string;
  bytes: number;
  waited: boolean;
}

interface KeyUse {
  bytes: number;
  /** In the order of their beginning. */
  readonly loading: Share[];
  shares: number;
}

interface Waiting {
  readonly share: Share;
  readonly bytes: number;
  begin(): void;
  giveUp(reason: unknown): void;
}

/** The budget; a process needs one. */
export class ReferenceBudget {
  readonly #maxBytes: number;
  readonly #keyBytes: number;
  readonly #maxRequestBytes: number;
  readonly #keys = new Map<string, KeyUse>();
  /** In the order of their beginning. */
  readonly #loading = new Set<Share>();
  readonly #waiting: Waiting[] = [];
  #senior: Share | undefined;
  #usedBytes = 0;

  constructor({ maxBytes, maxRequestBytes }: ReferenceBudgetOptions) {
    if (maxBytes < 2 * maxRequestBytes)
      throw new RangeError("A key's share is less than a request may hold.");
    this.#maxBytes = maxBytes;
    this.#keyBytes = maxBytes / 2;
    this.#maxRequestBytes = maxRequestBytes;
  }

  /** Bytes taken now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Begins what a request of this key will hold. */
  open(key: string): ReferenceShare {
    const share: Share = { key, bytes: 0, waited: false };
    const use = this.#keys.get(key) ?? { bytes: 0, loading: [], shares: 0 };
    this.#keys.set(key, use);
    use.loading.push(share);
    use.shares++;
    this.#loading.add(share);
    let open = true;
    return {
      get waited() {
        return share.waited;
      },
      take: (bytes, signal) => this.#take(share, bytes, signal),
      loaded: (bytes) => this.#loaded(share, bytes),
      release: () => {
        if (!open) return;
        open = false;
        this.#loaded(share, 0);
        use.shares--;
        if (use.shares === 0) this.#keys.delete(key);
      },
    };
  }

  async #take(share: Share, bytes: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (!this.#loading.has(share)) throw new Error("The share takes no more.");
    const waiting: Waiting = { share, bytes, begin: resolve, giveUp: reject };
    this.#waiting.push(waiting);
    this.#admit();
    if (!this.#waiting.includes(waiting)) return;
    share.waited = true;
    const onAbort = () => this.#giveUp((other) => other === waiting, signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #loaded(share: Share, keptBytes: number): void {
    const use = this.#keys.get(share.key);
    if (use === undefined) return;
    if (this.#loading.delete(share)) use.loading.splice(use.loading.indexOf(share), 1);
    if (this.#senior === share) this.#senior = undefined;
    this.#giveUp((waiting) => waiting.share === share, new Error("The share takes no more."));
    const freed = Math.max(0, share.bytes - keptBytes);
    share.bytes -= freed;
    use.bytes -= freed;
    this.#usedBytes -= freed;
    this.#admit();
  }

  #giveUp(isMeant: (waiting: Waiting) => boolean, reason: unknown): void {
    for (const waiting of this.#waiting.filter(isMeant)) {
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.giveUp(reason);
    }
    this.#admit();
  }

  /** Lets in those who wait and have room now. */
  #admit(): void {
    this.#senior ??= this.#oldestThatCanEnd();
    let isFull = false;
    for (const waiting of [...this.#waiting]) {
      const { share, bytes } = waiting;
      const use = this.#keys.get(share.key);
      if (use === undefined || !this.#fitsKey(share, use, bytes)) continue;
      const isSenior = share === this.#senior;
      if ((isFull && !isSenior) || !this.#fitsAll(isSenior, bytes)) {
        isFull = true;
        continue;
      }
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      share.bytes += bytes;
      use.bytes += bytes;
      this.#usedBytes += bytes;
      waiting.begin();
    }
  }

  #fitsKey(share: Share, { bytes: used, loading }: KeyUse, bytes: number): boolean {
    const [oldest] = loading;
    const left = oldest === share ? 0 : this.#stillNeeded(oldest);
    return used + bytes + left <= this.#keyBytes;
  }

  #fitsAll(isSenior: boolean, bytes: number): boolean {
    const left = isSenior ? 0 : this.#stillNeeded(this.#senior);
    return this.#usedBytes + bytes + left <= this.#maxBytes;
  }

  #stillNeeded(share: Share | undefined): number {
    return this.#maxRequestBytes - (share?.bytes ?? 0);
  }

  /** The oldest that the share of its key won't stop. */
  #oldestThatCanEnd(): Share | undefined {
    for (const share of this.#loading) {
      const use = this.#keys.get(share.key);
      if (use?.loading[0] !== share) continue;
      if (use.bytes + this.#stillNeeded(share) <= this.#keyBytes) return share;
    }
    return undefined;
  }
}
