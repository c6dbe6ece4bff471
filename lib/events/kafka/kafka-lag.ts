/** Where a group stands in a partition, as brokers report it. */
interface PartitionMeasure {
  readonly partition: number;
  /** The next offset that will be written. */
  readonly end: bigint;
  /** The oldest that is still there. */
  readonly start: bigint;
  /** The next that the group wants; negative when it has never said. */
  readonly committed: bigint;
}

interface Place {
  end: bigint;
  next: bigint;
}

/** How far a member is behind in the partitions that it has. */
export class KafkaLag {
  #places = new Map<number, Place>();
  #assigned: readonly number[] = [];

  /** Messages that wait behind those handled; undefined while nothing is known of a partition. */
  get value(): number | undefined {
    let sum = 0n;
    for (const partition of this.#assigned) {
      const place = this.#places.get(partition);
      if (place === undefined) return undefined;
      if (place.end > place.next) sum += place.end - place.next;
    }
    return Number(sum);
  }

  /** The member now has these partitions, of which nothing is known yet. */
  assign(partitions: readonly number[]): void {
    this.#assigned = partitions;
    this.#places = new Map();
  }

  /** What brokers report; what the member itself has seen since is newer. */
  measure(measures: readonly PartitionMeasure[]): void {
    for (const { partition, end, start, committed } of measures) {
      this.advance(partition, end, larger(start, committed));
    }
  }

  /** The member has seen that a partition reaches to `end`, and has handled what stands before `next`. */
  advance(partition: number, end: bigint, next: bigint): void {
    const place = this.#places.get(partition);
    this.#places.set(partition, { end: larger(end, place?.end), next: larger(next, place?.next) });
  }
}

function larger(one: bigint, other: bigint = one): bigint {
  return one > other ? one : other;
}
