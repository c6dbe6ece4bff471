import { expect, test } from "vitest";
import { merged, newcomersOf } from "./merge-rows.ts";

const row = (second: number) => ({ id: `gen-${second}`, ended_at: `2030-01-31T12:00:0${second}.000Z` });
const rows = (...seconds: number[]) => seconds.map(row);

test.for([
  ["none are new", rows(3, 2), rows(3, 2), [], false],
  ["older ones of later pages are not new", rows(6, 5), rows(6, 5, 4), [], false],
  ["a look from before the list is not new", rows(6, 5), rows(4, 3, 2), [], false],
  ["some are new, and known ones follow", rows(3, 2), rows(5, 4, 3), rows(5, 4), false],
  ["one came late into the middle", rows(5, 3), rows(5, 4, 3), rows(4), false],
  ["all of a full page are new", rows(3, 2), rows(7, 6, 5), rows(7, 6, 5), true],
  ["all there are are new", rows(), rows(2, 1), rows(2, 1), false],
] as const)("%s", ([, shown, newest, fresh, hasGap]) => {
  expect(newcomersOf(shown, newest, { limit: 3, hasOlder: true })).toEqual({ rows: fresh, hasGap });
});

test("what came late behind the last row of all is new too", () => {
  expect(newcomersOf(rows(6, 5), rows(6, 5, 4), { limit: 9, hasOlder: false }).rows).toEqual(rows(4));
});

test("what ended last comes first, and what came late stands in its place", () => {
  expect(merged(rows(5, 3), rows(6, 4))).toEqual(rows(6, 5, 4, 3));
});
