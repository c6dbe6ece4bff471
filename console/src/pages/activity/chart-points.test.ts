import { expect, test } from "vitest";
import { firstByteBands, firstBytePoints, groupPoints, stackedGroups, stepsUntil } from "./chart-points.ts";

const point = (group: string, requests: number, starts_at = "2030-01-31T11:00:00Z") => ({
  starts_at,
  group,
  requests,
  errors: 0,
  prompt_tokens: 0,
  completion_tokens: 0,
  usage: 0,
  byok_usage_inference: 0,
  first_byte_counts: [requests, 0, 1, 0],
});
const steps = ["2030-01-31T11:00:00.000Z", "2030-01-31T12:00:00.000Z"];

test.for([
  ["hour", 49, "2030-01-29T12:00:00.000Z", "2030-01-31T12:00:00.000Z"],
  ["day", 31, "2030-01-01T00:00:00.000Z", "2030-01-31T00:00:00.000Z"],
] as const)("every %s has its place", ([step, count, first, last]) => {
  const all = stepsUntil(new Date("2030-01-31T12:59:59Z"), step);
  expect([all.length, all[0], all.at(-1)]).toEqual([count, first, last]);
});

test("the groups beyond the colours are one, in which nothing is lost", () => {
  const points = ["a", "b", "c", "d", "e", "f", "g"].map((group, index) => point(group, 10 - index));
  const stacked = stackedGroups(points, (group) => `<${group}>`);
  expect(stacked.map(({ name }) => name)).toEqual(["<a>", "<b>", "<c>", "<d>", "<e>", "2 others"]);
  const [full, none] = groupPoints(points, steps, stacked, ({ requests }) => requests);
  expect(full?.values).toMatchObject({ "<a>": 10, "<e>": 6, "2 others": 9 });
  expect(Object.values(none?.values ?? {})).toEqual([0, 0, 0, 0, 0, 0]);
});

test("first bytes are counted by bands, those beyond all bounds too", () => {
  expect(firstByteBands([100, 200, 400]).map(({ name }) => name)).toEqual(["≤ 200 ms", "> 400 ms"]);
  expect(firstByteBands([100, 200]).map(({ name }) => name)).toEqual(["≤ 200 ms", "> 200 ms"]);
  const [full] = firstBytePoints([point("a", 3), point("b", 4)], steps, [100, 200]);
  expect(full?.values).toEqual({ "≤ 200 ms": 7, "> 200 ms": 2 });
});
