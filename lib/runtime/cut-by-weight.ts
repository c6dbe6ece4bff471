interface WeightLimits<T> {
  readonly maxItems: number;
  /** An item that weighs more goes alone. */
  readonly maxWeight: number;
  weigh(item: T): number;
}

/** Takes off the front of a queue what goes together: at least one item, where there is one. */
export function cutByWeight<T>(queue: T[], { maxItems, maxWeight, weigh }: WeightLimits<T>): T[] {
  let weight = 0;
  const end = queue.findIndex((item, index) => {
    weight += weigh(item);
    return index >= maxItems || (index > 0 && weight > maxWeight);
  });
  return queue.splice(0, end < 0 ? queue.length : end);
}
