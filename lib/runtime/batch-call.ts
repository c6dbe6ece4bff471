/**
 * Puts calls that are due at the same moment into one.
 *
 * 1. Nothing waits for company: a batch goes out at the end of the event loop's turn in which its first item came, or
 *    when a batch before it has ended.
 * 2. At most `maxInFlight` batches run at once; what comes meanwhile makes the next ones.
 * 3. Items keep their order, within a batch and from batch to batch. A batch that fails fails each of its items.
 */
import { cutByWeight } from "./cut-by-weight.ts";

/** How batches are run. */
export interface BatchCallOptions<I, O> {
  /** Results in the order of the items. */
  run(items: readonly I[]): Promise<readonly O[]>;
  readonly maxItems: number;
  readonly maxInFlight: number;
  /** What an item adds to its batch, bytes; 0 unless given. */
  weigh?(item: I): number;
  /** Most bytes of a batch; an item that has more goes alone. */
  readonly maxWeight?: number;
}

interface Waiting<I, O> {
  readonly item: I;
  resolve(result: O): void;
  reject(thrown: unknown): void;
}

/** A call that takes many items at once, offered as a call for one. */
export class BatchCall<I, O> {
  readonly #options: BatchCallOptions<I, O>;
  readonly #waiting: Waiting<I, O>[] = [];
  #inFlight = 0;
  #scheduled = false;

  constructor(options: BatchCallOptions<I, O>) {
    this.#options = options;
  }

  /** The result for one item; rejects with whatever its batch rejects with. */
  call(item: I): Promise<O> {
    return new Promise<O>((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#scheduled) return;
      this.#scheduled = true;
      setImmediate(() => this.#dispatch()); // 1.
    });
  }

  #dispatch(): void {
    this.#scheduled = false;
    const { maxItems, maxInFlight, weigh = () => 0, maxWeight = Infinity } = this.#options;
    while (this.#waiting.length > 0 && this.#inFlight < maxInFlight) {
      // 2., 3.
      void this.#run(cutByWeight(this.#waiting, { maxItems, maxWeight, weigh: ({ item }) => weigh(item) }));
    }
  }

  async #run(batch: readonly Waiting<I, O>[]): Promise<void> {
    this.#inFlight += 1;
    try {
      const results = await this.#options.run(batch.map(({ item }) => item));
      if (results.length !== batch.length) throw new Error("a batch has not one result for each item");
      for (const [index, waiting] of batch.entries()) waiting.resolve(results[index] as O);
    } catch (thrown) {
      for (const waiting of batch) waiting.reject(thrown);
    } finally {
      this.#inFlight -= 1;
      this.#dispatch();
    }
  }
}
