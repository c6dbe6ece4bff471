import { expect, test } from "vitest";
import { cutByWeight } from "./cut-by-weight.ts";

const limits = { maxItems: 3, maxWeight: 10, weigh: (weight: number) => weight };

test.for([
  ["all that fits", [1, 2], [[1, 2]]],
  [
    "so many at most",
    [1, 1, 1, 1, 1],
    [
      [1, 1, 1],
      [1, 1],
    ],
  ],
  ["up to the weight itself", [6, 4, 1], [[6, 4], [1]]],
  ["what is too heavy alone, wherever it stands", [11, 1, 12, 2], [[11], [1], [12], [2]]],
  ["nothing of nothing", [], []],
] as const)("takes %s", ([, items, expected]) => {
  const queue: number[] = [...items];
  const parts: number[][] = [];
  while (queue.length > 0) parts.push(cutByWeight(queue, limits));
  expect(parts).toEqual(expected);
  expect(cutByWeight(queue, limits)).toEqual([]);
});
