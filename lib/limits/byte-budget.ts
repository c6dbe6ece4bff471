/**
 * Bounds the bytes that are held at one time for all owners (keys, accounts), fairly between them.
 *
 * 1. Never more than `maxBytes` are taken.
 * 2. An owner holds at most `weight` times what is left free: dynamic thresholds as switches share their memory by (Choudhury
 *    and Hahne 1998). However much one owner asks for, room for others is left, the more the fewer hold much.
 * 3. Of `maxBytes`, `maxShareBytes` are set aside and count as free for nobody but one share at a time, the senior: the
 *    first that gets no room otherwise. It stays that until it is settled or released. So shares that have each got a
 *    part can't wait for each other for good: the senior alone holds what is set aside, which is room to its end, once
 *    seniors before it have ended, as they do by themselves.
 * 4. Whoever waits is asked in order each time when room is given back; who must wait for its own sake (2) holds up
 *    nobody else.
 */

/** Who bytes are held for, and how many times the free room it may hold. */
export interface ByteOwner {
  readonly name: string;
  readonly weight: number;
}

/** Bounds of a ByteBudget, bytes. */
interface ByteBudgetOptions {
  readonly maxBytes: number;
  /** The most that one share grows to. */
  readonly maxShareBytes: number;
}

/** What one request holds. */
export interface ByteShare {
  readonly bytes: number;
  /** Whether it ever had to wait. */
  readonly waited: boolean;
  /** Takes so many more: true when there is room at once, else `granted` is called as soon as there is. */
  grow(bytes: number, granted: () => void): boolean;
  /** Says that it has come to its end, and gives back all but so many bytes. */
  settle(bytes: number): void;
  /** Gives everything back for good; whatever waits is not granted. May be called more than once. */
  release(): void;
}

interface OpenShare {
  readonly owners: readonly ByteOwner[];
  bytes: number;
  /** Of them, how many were set aside. */
  asideBytes: number;
}

interface Waiting {
  readonly share: OpenShare;
  readonly bytes: number;
  readonly granted: () => void;
}

/** The room for bytes of one kind. */
export class ByteBudget {
  #options: ByteBudgetOptions;
  readonly #heldByOwner = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();
  #usedBytes = 0;
  /** Of what is used, how much was set aside. */
  #asideBytes = 0;
  #senior: OpenShare | undefined;

  constructor(options: ByteBudgetOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Has at least these bounds from now on. */
  widen({ maxBytes, maxShareBytes }: ByteBudgetOptions): void {
    this.#options = {
      maxBytes: Math.max(maxBytes, this.#options.maxBytes),
      maxShareBytes: Math.max(maxShareBytes, this.#options.maxShareBytes),
    };
  }

  /** A share for one request, with nothing in it yet. */
  open(owners: readonly ByteOwner[]): ByteShare {
    const share: OpenShare = { owners, bytes: 0, asideBytes: 0 };
    let [isOpen, waited] = [true, false];
    return {
      get bytes() {
        return share.bytes;
      },
      get waited() {
        return waited;
      },
      grow: (bytes, granted) => {
        if (!isOpen) return false;
        const hasRoom = this.#take(share, bytes);
        if (hasRoom) return true;
        waited = true;
        this.#waiting.add({ share, bytes, granted });
        return false;
      },
      settle: (bytes) => this.#giveBack(share, Math.max(0, share.bytes - bytes)),
      release: () => {
        isOpen = false;
        this.#giveBack(share, share.bytes);
      },
    };
  }

  #take(share: OpenShare, bytes: number): boolean {
    if (!this.#isFair(share, bytes)) {
      this.#senior ??= share; // 3.
      if (this.#senior !== share || bytes > this.#options.maxShareBytes - this.#asideBytes) return false;
      this.#addAside(share, bytes);
    }
    this.#add(share, bytes);
    return true;
  }

  #isFair({ owners }: OpenShare, bytes: number): boolean {
    const { maxBytes, maxShareBytes } = this.#options;
    const freeBytes = maxBytes - maxShareBytes - (this.#usedBytes - this.#asideBytes) - bytes;
    if (freeBytes < 0) return false; // 1.
    return owners.every(
      ({ name, weight }) => (this.#heldByOwner.get(name) ?? 0) + bytes <= weight * freeBytes, // 2.
    );
  }

  #giveBack(share: OpenShare, bytes: number): void {
    if (share === this.#senior) this.#senior = undefined; // 3.
    this.#addAside(share, -Math.min(bytes, share.asideBytes));
    this.#add(share, -bytes);
    for (const entry of this.#waiting) {
      if (entry.share !== share && !this.#take(entry.share, entry.bytes)) continue; // 4.
      this.#waiting.delete(entry);
      if (entry.share !== share) entry.granted();
    }
  }

  #addAside(share: OpenShare, bytes: number): void {
    share.asideBytes += bytes;
    this.#asideBytes += bytes;
  }

  #add(share: OpenShare, bytes: number): void {
    share.bytes += bytes;
    this.#usedBytes += bytes;
    for (const { name } of share.owners) {
      const held = (this.#heldByOwner.get(name) ?? 0) + bytes;
      if (held === 0) this.#heldByOwner.delete(name);
      else this.#heldByOwner.set(name, held);
    }
  }
}
