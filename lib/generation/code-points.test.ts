import fc from "fast-check";
import { expect, test } from "vitest";
import { codePoints } from "./code-points.ts";

const codeUnit = fc.oneof(
  fc.integer({ min: 0, max: 0xffff }),
  fc.integer({ min: 0xd7ff, max: 0xe000 }),
  fc.constantFrom(0xd800, 0xdbff, 0xdc00, 0xdfff),
);
const anyText = fc.array(codeUnit, { maxLength: 40 }).map((units) => String.fromCharCode(...units));

test("characters are Unicode code points, whatever the text", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      expect(codePoints(text)).toBe([...text].length);
    }),
    { numRuns: 2000 },
  );
});

test.for([
  ["", 0],
  ["abc", 3],
  ["é", 1],
  ["e\u0301", 2],
  ["𝄞", 1],
  ["👩‍👩‍👧", 5],
  ["\ud83d", 1],
  ["\ude00\ud83d", 2],
  ["\ud83d\ud83d\ude00", 2],
] as const)("%j has %i", ([text, count]) => {
  expect(codePoints(text)).toBe(count);
});
