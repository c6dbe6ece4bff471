import { expect, test } from "vitest";
import { hrefOf, parseHash } from "./hash-route.ts";

test.for([
  ["", "", []],
  ["#/", "", []],
  ["#/requests", "requests", []],
  ["#/requests/gen%2Fodd", "requests", ["gen/odd"]],
  ["#/requests/%zz", "requests", ["%zz"]],
] as const)("%s names a page", ([hash, page, rest]) => {
  expect(parseHash(hash)).toMatchObject({ page, rest });
});

test("an address leads to what it was made of", () => {
  const href = hrefOf(["requests", "a/b?c#d"], { model: "x/y & z", outcome: "", key: undefined });
  const { page, rest, query } = parseHash(href);
  expect([page, rest, [...query]]).toEqual(["requests", ["a/b?c#d"], [["model", "x/y & z"]]]);
});
