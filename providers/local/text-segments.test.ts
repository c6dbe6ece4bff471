import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isSpoken, speakableText } from "./speakable-text.ts";
import { textSegments, weightOf } from "./text-segments.ts";

const cut = (text: string, maxWeight = 240) => [...textSegments(text, maxWeight)];

describe("textSegments", () => {
  it("gives the first sentence up to its first clause mark, then sentences", () => {
    const second = "The second sentence is long enough to be spoken all on its own.";
    const third = "And so is the third one, which has a clause mark, but is not cut there.";
    expect(cut(`Good morning everybody, this is the first. ${second} ${third}`)).toEqual([
      "Good morning everybody,",
      `this is the first. ${second}`,
      third,
    ]);
  });

  it("does not cut the opening after one short word, nor inside a number", () => {
    expect(cut("Well, that is 1,000 times better")).toEqual(["Well, that is 1,000 times better"]);
  });

  it("joins short sentences, but not to the first", () => {
    expect(cut("Ready. One. Two. Three. Four.")).toEqual(["Ready.", "One. Two. Three. Four."]);
  });

  it("keeps an abbreviation or initial with what follows", () => {
    expect(cut("Dr. J. Smith spoke. Mr. Brown listened.")).toEqual([
      "Dr. J. Smith spoke.",
      "Mr. Brown listened.",
    ]);
  });

  it("cuts a long sentence after a clause in its later half, else between words", () => {
    const words = "word ".repeat(30).trim();
    expect(cut(`${words}, ${words}`, 200)).toEqual([`${words},`, words]);
    const plain = cut("word ".repeat(100), 200);
    expect(plain.length).toBeGreaterThan(2);
    expect(plain.every((piece) => /^word( word)*$/.test(piece))).toBe(true);
  });

  it("cuts words of more than 60 characters", () => {
    expect(cut("x".repeat(130))[0]).toBe(`${"x".repeat(60)} ${"x".repeat(60)} ${"x".repeat(10)}`);
  });

  it("counts digits and signs as the words that they are read as", () => {
    expect(weightOf("a b, c.")).toBe(7);
    expect(weightOf("10%")).toBe(12);
    expect(cut("9".repeat(240)).map((piece) => piece.length)).toEqual([60, 60, 60, 60]);
  });

  it("says everything in order, in bounded pieces that each have something to be spoken", () => {
    const word = fc.oneof(
      fc.constantFrom("Hello,", "end.", "Dr.", "what?", "(so)", "a;", "--", "10%", "1,000.50", "...", "U.S."),
      fc.string({ unit: "grapheme-ascii", maxLength: 90 }),
      fc.string({ unit: "binary", maxLength: 12 }),
    );
    const input = fc.array(word, { maxLength: 80 }).map((words) => words.join(" "));
    fc.assert(
      fc.property(input, fc.integer({ min: 60, max: 240 }), (given, maxWeight) => {
        const text = speakableText(given);
        const pieces = cut(text, maxWeight);
        for (const piece of pieces) {
          expect(isSpoken(piece)).toBe(true);
          expect(weightOf(piece)).toBeLessThanOrEqual(maxWeight);
        }
        const spokenOf = (said: string) => said.replace(/[^A-Za-z0-9$%&@#+=*~^|\\/_]/g, "");
        expect(pieces.map(spokenOf).join("")).toBe(spokenOf(text));
      }),
    );
  });
});
