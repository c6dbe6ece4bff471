import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ImageDataUrlDecoder, isDataUrl, parseImageDataUrl } from "./data-url.ts";

const notBase64 = { problem: "is not valid base64" };
const notDataUrl = { problem: "is not a data URL of a base64 image" };

/** Canonical base64 by its definition, as slow as it likes. */
function isCanonical(text: string): boolean {
  const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text === "" || text.length % 4 !== 0) return false;
  const digits = text.replace(/={1,2}$/, "");
  const values = [...digits].map((digit) => alphabet.indexOf(digit));
  if (values.includes(-1)) return false;
  const unusedBits = [0, 0, 4, 2][digits.length % 4] ?? 0;
  return (values.at(-1) ?? 0) % 2 ** unusedBits === 0;
}

describe("an image's data URL", () => {
  test("gives back any bytes, whatever type it declares and in whatever case", () => {
    const prefixes = [
      "data:image/png;base64,",
      "DATA:IMAGE/PNG;BASE64,",
      "data:Image/svg+xml;Base64,",
      "data:image/vnd.microsoft.icon;base64,",
      "data:image/x;base64,",
      "data:image/png;charset=utf-8;base64,",
      'data:image/png;name="a;b, c.png";size=7;base64,',
      "data:image/png;name=a%20b.png;base64,",
      "data:image/png;name=;base64,",
      "data:image/png;base64=no;base64,",
    ];
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1 }), fc.constantFrom(...prefixes), (bytes, prefix) => {
        const { bytes: parsed } = parseImageDataUrl(prefix + Buffer.from(bytes).toString("base64"));
        expect(parsed === undefined ? undefined : [...parsed]).toEqual([...bytes]);
      }),
    );
  });

  test("takes canonical base64 and nothing else", () => {
    const digits = fc.constantFrom(..."ABQgwxyz0189+/=-_ \n,%ā\u0141é\0".split(""));
    const loose = fc.array(digits, { maxLength: 12 }).map((parts) => parts.join(""));
    const near = fc
      .tuple(fc.base64String(), loose, fc.nat(40))
      .map(([text, insert, at]) => text.slice(0, at) + insert + text.slice(at));
    fc.assert(
      fc.property(fc.oneof(loose, near, fc.base64String()), (encoded) => {
        const parsed = parseImageDataUrl(`data:image/png;base64,${encoded}`);
        if (!isCanonical(encoded)) expect(parsed).toEqual(notBase64);
        else expect(parsed.bytes?.toString()).toBe(Buffer.from(encoded, "base64").toString());
      }),
      { numRuns: 2000 },
    );
  });

  test("is the same however its text is cut", () => {
    const digits = fc
      .array(fc.constantFrom(..."ABQw019+/=-\n"), { maxLength: 9 })
      .map((parts) => parts.join(""));
    const content = fc.oneof(fc.base64String(), digits, fc.base64String({ minLength: 1400 }));
    const start = fc.constantFrom("data:image/png;base64,", " data:image/png;base64,", "data:image/x", "");
    fc.assert(
      fc.property(start, content, fc.array(fc.nat(1500), { maxLength: 8 }), (prefix, encoded, places) => {
        const url = prefix + encoded;
        const decoder = new ImageDataUrlDecoder(1024);
        const at = [0, ...places.map((place) => Math.min(place, url.length)), url.length].sort(
          (a, b) => a - b,
        );
        for (const [index, from] of at.entries()) decoder.take(url.slice(from, at[index + 1] ?? url.length));
        const [inPieces, whole] = [decoder.finish(), parseImageDataUrl(url, 1024)];
        expect(inPieces.problem).toBe(whole.problem);
        expect(inPieces.bytes?.toString()).toBe(whole.bytes?.toString());
      }),
      { numRuns: 2000 },
    );
  });

  test("never throws, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        for (const url of [text, `data:${text}`, `data:image/png;${text}`, `data:image/png;base64,${text}`]) {
          const { bytes, problem } = parseImageDataUrl(url);
          expect(bytes === undefined).toBe(problem !== undefined);
        }
      }),
    );
  });

  test.for([
    "QQ", // not padded
    "QR==", // bits beyond the last byte
    "QQ==QQ==",
    "QQ=",
    "QUI\nQUJD",
    " QUJD",
    "QUJD ",
    "QU-_",
    "QUJD%3D",
    "",
    "=",
    "====",
  ])("refuses the base64 %j", (encoded) => {
    expect(parseImageDataUrl(`data:image/png;base64,${encoded}`)).toEqual(notBase64);
  });

  test.for([
    "",
    "QUJD",
    "data:,QUJD",
    "data:image/png,QUJD",
    "data:;base64,QUJD",
    "data:text/plain;base64,QUJD",
    "data:image/;base64,QUJD",
    "data:image/png;charset;base64,QUJD",
    "data:image/png;;base64,QUJD",
    'data:image/png;name="a;base64,QUJD',
    `data:image/png;name=${"x".repeat(1100)};base64,QUJD`,
    " data:image/png;base64,QUJD",
    "data:image/png;base64QUJD",
    `data:image/${"x".repeat(200)};base64,QUJD`,
    "https://example.com/data:image/png;base64,QUJD",
  ])("refuses %j", (text) => {
    expect(parseImageDataUrl(text)).toEqual(notDataUrl);
  });

  test("is limited by the bytes it stands for", () => {
    const limit = 1024 * 1024;
    const urlOf = (bytes: number) => `data:image/png;base64,${Buffer.alloc(bytes).toString("base64")}`;
    expect(parseImageDataUrl(urlOf(limit), limit).bytes).toHaveLength(limit);
    for (const bytes of [limit + 1, limit + 2, limit + 3, 2 * limit]) {
      expect(parseImageDataUrl(urlOf(bytes), limit)).toEqual({ problem: "is larger than 1 MiB" });
    }
    // Too long even though it would not decode: the length is looked at first.
    expect(parseImageDataUrl(`data:image/png;base64,${"*".repeat(2 * limit)}`, limit).problem).toContain(
      "MiB",
    );
  });

  test("is distinguished from other URLs", () => {
    for (const text of ["data:image/png;base64,AA==", "DATA:x", " data:x"])
      expect(isDataUrl(text)).toBe(true);
    for (const text of ["https://host/data:x", "database", ""]) expect(isDataUrl(text)).toBe(false);
  });
});
