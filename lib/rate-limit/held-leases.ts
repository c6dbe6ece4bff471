import { type Lease, leasesKey } from "./redis-scripts.ts";

/** The leases that a process holds, by the bucket that they count in. */
export class HeldLeases {
  readonly #buckets = new Map<string, Set<Lease>>();

  add(lease: Lease): void {
    const key = leasesKey(lease.request);
    const leases = this.#buckets.get(key);
    if (leases === undefined) this.#buckets.set(key, new Set([lease]));
    else leases.add(lease);
  }

  delete(lease: Lease): void {
    const key = leasesKey(lease.request);
    const leases = this.#buckets.get(key);
    leases?.delete(lease);
    if (leases?.size === 0) this.#buckets.delete(key);
  }

  /** Those of each bucket as they stand when it is its turn; a bucket that has none by then is left out. */
  *byBucket(): Generator<readonly [Lease, ...Lease[]]> {
    for (const key of [...this.#buckets.keys()]) {
      const [first, ...others] = this.#buckets.get(key) ?? [];
      if (first !== undefined) yield [first, ...others];
    }
  }
}
