import { expect, test } from "vitest";
import { firstByteWithin, groupsOf, totalsOf } from "./totals.ts";

const point = (group: string | null, usage: number, counts: number[] = []) => ({
  starts_at: "2030-01-31T12:00:00.000Z",
  group,
  requests: 1,
  errors: 0,
  prompt_tokens: 2,
  completion_tokens: 3,
  usage,
  byok_usage_inference: usage,
  first_byte_counts: counts,
});

test("amounts add up exactly where numbers would not", () => {
  const totals = totalsOf([point("a", 0.1, [1, 0]), point("a", 0.2, [2, 1])]);
  expect(totals).toEqual({
    requests: 2,
    errors: 0,
    tokens: 10,
    nanoUsd: 300_000_000n,
    ownKeysNanoUsd: 300_000_000n,
    firstByteCounts: [3, 1],
  });
});

test("what cost most comes first, and what has no group is one of its own", () => {
  const groups = groupsOf([point("a", 1), point(null, 2), point("a", 0.5), point("b", 3)]);
  expect(groups.map(({ group, totals }) => [group, totals.requests])).toEqual([
    ["b", 1],
    [null, 1],
    ["a", 2],
  ]);
});

test.for([
  [[0, 0, 0], 0.5, undefined],
  [[1, 1, 0], 0.5, "≤ 100 ms"],
  [[1, 2, 0], 0.5, "≤ 1.6 s"],
  [[1, 2, 9], 0.5, "> 1.6 s"],
] as const)("of %j first bytes the share %d came within %s", ([counts, share, told]) => {
  expect(firstByteWithin(counts, [100, 1_600], share)).toBe(told);
});
