/**
 * Bounds the bytes that request bodies hold at one time over all requests. A body's bytes are reserved as they arrive,
 * and held until its request's answer has ended.
 *
 * 1. Never more than `maxBytes` are reserved.
 * 2. An owner (a key, an account) gets more only while it holds at most `weight` times what is free: dynamic
 *    thresholds as switches share their memory by (Choudhury and Hahne 1998). However much one owner asks for, room for
 *    others is left, the more the fewer hold much.
 * 3. Of `maxBytes`, `maxBodyBytes` are set aside and count as free for nobody but one body at a time, the finisher: the
 *    first that gets no room otherwise. It stays that until it has arrived or is given up. So bodies that have half
 *    arrived can't wait for each other for good: where none has arrived whole, the finisher alone holds what is set
 *    aside, which is room to its end. What has arrived is held for as long as its answer takes, which has a deadline.
 * 4. Whoever waits is asked in order each time when room is given back; who must wait for its own sake (2) holds up
 *    nobody else.
 */

/** Who a body is held for, and how many times the free room it may hold. */
export interface BodyOwner {
  readonly name: string;
  readonly weight: number;
}

/** What bounds the bodies of all requests. */
export interface BodyBudgetOptions {
  readonly maxBytes: number;
  /** The longest single body. */
  readonly maxBodyBytes: number;
}

/** What one body holds. */
export interface BodyShare {
  readonly bytes: number;
  /** Takes so many more: true when there is room at once, else `granted` is called as soon as there is. */
  grow(bytes: number, granted: () => void): boolean;
  /** Says that the body is whole, and gives back all but so many bytes. */
  settle(bytes: number): void;
  /** Gives everything back and no longer waits. May be called more than once. */
  release(): void;
}

interface Waiting {
  readonly bytes: number;
  readonly granted: () => void;
}

/** The room for request bodies. */
export class BodyBudget {
  readonly #options: BodyBudgetOptions;
  readonly #heldByOwner = new Map<string, number>();
  readonly #waiting = new Map<OpenShare, Waiting>();
  #usedBytes = 0;
  /** Of what is used, how much was set aside. */
  #asideBytes = 0;
  #finisher: OpenShare | undefined;

  constructor(options: BodyBudgetOptions) {
    this.#options = options;
  }

  /** Bytes reserved now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** A share for one body, with nothing in it yet. */
  open(owners: readonly BodyOwner[]): BodyShare {
    return new OpenShare(owners, {
      take: (share, bytes, granted) => {
        if (this.#take(share, bytes)) return true;
        this.#waiting.set(share, { bytes, granted });
        return false;
      },
      giveBack: (share, bytes) => this.#giveBack(share, bytes),
    });
  }

  #take(share: OpenShare, bytes: number): boolean {
    const { maxBytes, maxBodyBytes } = this.#options;
    const freeBytes = maxBytes - maxBodyBytes - (this.#usedBytes - this.#asideBytes);
    if (!this.#isFair(share.owners, bytes, freeBytes)) {
      if (this.#finisher !== undefined && this.#finisher !== share) return false;
      if (bytes > maxBodyBytes - this.#asideBytes) return false;
      this.#finisher = share;
      share.asideBytes += bytes;
      this.#asideBytes += bytes;
    }
    this.#add(share, bytes);
    return true;
  }

  #isFair(owners: readonly BodyOwner[], bytes: number, freeBytes: number): boolean {
    if (bytes > freeBytes) return false;
    return owners.every(({ name, weight }) => (this.#heldByOwner.get(name) ?? 0) <= weight * freeBytes);
  }

  /** From a share that no longer arrives. */
  #giveBack(share: OpenShare, bytes: number): void {
    this.#waiting.delete(share);
    if (share === this.#finisher) this.#finisher = undefined;
    const asideBytes = Math.min(bytes, share.asideBytes);
    share.asideBytes -= asideBytes;
    this.#asideBytes -= asideBytes;
    this.#add(share, -bytes);
    for (const [waiting, { bytes: wanted, granted }] of this.#waiting) {
      if (!this.#take(waiting, wanted)) continue;
      this.#waiting.delete(waiting);
      granted();
    }
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

interface ShareActions {
  take(share: OpenShare, bytes: number, granted: () => void): boolean;
  giveBack(share: OpenShare, bytes: number): void;
}

class OpenShare implements BodyShare {
  bytes = 0;
  /** Of them, how many were set aside. */
  asideBytes = 0;
  readonly owners: readonly BodyOwner[];
  readonly #actions: ShareActions;

  constructor(owners: readonly BodyOwner[], actions: ShareActions) {
    this.owners = owners;
    this.#actions = actions;
  }

  grow(bytes: number, granted: () => void): boolean {
    return this.#actions.take(this, bytes, granted);
  }

  settle(bytes: number): void {
    this.#actions.giveBack(this, Math.max(0, this.bytes - bytes));
  }

  release(): void {
    this.#actions.giveBack(this, this.bytes);
  }
}
