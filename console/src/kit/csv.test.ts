import { expect, test } from "vitest";
import { csvOf } from "./csv.ts";

test.for([
  ["plain", "plain"],
  ['a "b", c', '"a ""b"", c"'],
  ["two\nlines", '"two\nlines"'],
  ["=HYPERLINK(1)", "'=HYPERLINK(1)"],
  ["@SUM(1)", "'@SUM(1)"],
  ["-0.000000001", "-0.000000001"],
  [-2, "-2"],
  [null, ""],
  [false, "false"],
] as const)("%j stands in a file as %j", ([value, field]) => {
  expect(csvOf([{ title: "the, value", value: () => value }], [0])).toBe(`"the, value"\r\n${field}\r\n`);
});
