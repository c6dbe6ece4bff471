import type { LimitedRequest } from "./limiter.ts";
import type { LocalCounts, WindowKind } from "./local-counts.ts";
import { accountWindowKey, windowKey } from "./redis-scripts.ts";

/** Requests of one window that were not reported to Redis. */
interface Debt {
  /** Of the window's counter in Redis. */
  readonly key: string;
  readonly kind: WindowKind;
  /** Of the bucket or the account. */
  readonly name: string;
  readonly count: number;
  /** When the window ends, monotonic milliseconds. */
  readonly endsMs: number;
}

/** What a process admitted alone in windows that last. */
export class RedisDebts {
  readonly #local: LocalCounts;
  #debts = new Map<string, Debt>();

  constructor(local: LocalCounts) {
    this.#local = local;
  }

  /** One more was admitted alone, and counted in `local`. */
  owe(request: LimitedRequest): void {
    this.#change(request, 1);
  }

  /** Redis has come to know of one. */
  pay(request: LimitedRequest): void {
    this.#change(request, -1);
  }

  /** All there are; they are none from then on. */
  take(): readonly Debt[] {
    this.dropEnded();
    const debts = [...this.#debts.values()];
    this.#debts = new Map();
    return debts;
  }

  /** Drops what no window counts any more. */
  dropEnded(): void {
    for (const [key, { kind, name, endsMs }] of this.#debts) {
      if (this.#local.endsMs(kind, name) !== endsMs) this.#debts.delete(key);
    }
  }

  #change(request: LimitedRequest, change: 1 | -1): void {
    const { bucket, account } = request;
    this.#set(windowKey(request), "bucket", bucket, change);
    if (account !== undefined) this.#set(accountWindowKey(account), "account", account, change);
  }

  #set(key: string, kind: WindowKind, name: string, change: 1 | -1): void {
    const endsMs = this.#local.endsMs(kind, name);
    const known = this.#debts.get(key);
    const count = (known !== undefined && known.endsMs === endsMs ? known.count : 0) + change;
    if (endsMs !== undefined && count > 0) this.#debts.set(key, { key, kind, name, count, endsMs });
    else this.#debts.delete(key);
  }
}
