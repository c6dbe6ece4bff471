import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { speakableText } from "./speakable-text.ts";

describe("speakableText", () => {
  it.each([
    ["Café naïve Łódź Straße Ærø", "Cafe naive Lodz Strasse AEro"],
    ["“Don’t” – he said…", '"Don\'t" - he said...'],
    ["wait — what", "wait -- what"],
    ["ﬁne ＡＢＣ 𝓗𝓲", "fine ABC Hi"],
    ["½ and 2½", "1/2 and 2 1/2"],
    ["€5, €1 or 5 € and £1.50", "5 euros, 1 euro or 5 euros and 1.50 pounds"],
    ["¥5 million, $5", "5 million yen, $5"],
    ["20° × 3", "20 degrees times 3"],
    ["a\u0000b\u0007c\td\u200be", "a b c d e"],
    ["I ♥ NY 🎉!", "I NY!"],
    ["Привет Bob 你好", "Bob"],
    ["one\ntwo.\r\nthree\n\n\nfour", "one, two. three. four"],
    ["a \uD800 b", "a b"],
  ])("reads %j as %j", (input, text) => {
    expect(speakableText(input)).toBe(text);
  });

  it.each(["", "  \n", "...?! -- ()", "你好，世界。", "Привет", "\u0000\u001b", "🎉", "\u0301", "\uD800"])(
    "finds nothing to be spoken in %j",
    (input) => {
      expect(speakableText(input)).toBe("");
    },
  );

  it.each(["7", "a", "é", "$", "€", "%"])("finds something to be spoken in %j", (input) => {
    expect(speakableText(input)).not.toBe("");
  });

  it("always gives printable ASCII without double spaces, and leaves that as it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (input) => {
        const text = speakableText(input);
        expect(text).toMatch(/^(?:[!-~]+(?: [!-~]+)*)?$/);
        expect(speakableText(text)).toBe(text);
      }),
    );
  });
});
