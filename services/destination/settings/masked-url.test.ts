import fc from "fast-check";
import { expect, test } from "vitest";
import { isMaskedUrl, maskUrl, unmaskUrl } from "./masked-url.ts";

const letters = (size: number) =>
  fc.string({ unit: fc.constantFrom(..."abcXYZ019%-._~+"), minLength: size, maxLength: 40 });
const part = fc
  .record({ name: letters(0), hasSign: fc.boolean(), value: letters(0) })
  .map(({ name, hasSign, value }) => (hasSign ? `${name}=${value}` : value));
const anyUrl = fc
  .record({
    scheme: fc.constantFrom("http", "https", "HTTPS"),
    path: fc.array(letters(0)),
    parts: fc.array(part),
    hash: letters(0),
  })
  .map(({ scheme, path, parts, hash }) => {
    return `${scheme}://receiver.test/${path.join("/")}?${parts.join("&")}#${hash}?b=c`;
  });

test.for([
  ["https://a.test/hook?token=secret&x=", "https://a.test/hook?token=…&x="],
  ["https://a.test/?k=abcdefghijklmnopqrstuvwxyz&k=1", "https://a.test/?k=abc…wxyz&k=…"],
  ["https://a.test/?secret", "https://a.test/?…"],
  ["https://a.test/?sig=a=b==", "https://a.test/?sig=…"],
  ["https://a.test/services/T01AB/B9/abcdefghijklmnopQRSTUVWX", "https://a.test/services/…/…/abc…UVWX"],
  ["https://a.test/api/webhooks/123456789/ab-12_Z?wait=true", "https://a.test/api/webhooks/…/…?wait=…"],
  ["https://a.test/aaaabbbbccccddddeeee", "https://a.test/…"],
  ["https://a.test/v1.2/dead-letters/", "https://a.test/v1.2/dead-letters/"],
  ["https://a.test:8443/api/public/otel", "https://a.test:8443/api/public/otel"],
  ["https://a.test", "https://a.test"],
  ["https://a.test/hook", "https://a.test/hook"],
  ["https://a.test/hook?", "https://a.test/hook?"],
  ["https://a.test/#?a=b", "https://a.test/#?a=b"],
  ["{prefix}?{date}=a", "{prefix}?{date}=a"],
  ["what?ever=1", "what?ever=1"],
] as const)("%s is shown as %s", ([text, shown]) => {
  expect(maskUrl(text)).toBe(shown);
  expect(isMaskedUrl(shown)).toBe(shown.includes("…"));
  expect(unmaskUrl(shown, text)).toBe(text);
});

test("what is shown means what is stored, and shows none of its short values", () => {
  fc.assert(
    fc.property(anyUrl, (url) => {
      const shown = maskUrl(url);
      expect(unmaskUrl(shown, url)).toBe(url);
      expect(maskUrl(shown)).toBe(shown);
    }),
  );
  fc.assert(
    fc.property(letters(1), (value) => {
      const secret = `secret${value}`.slice(0, 23);
      expect(maskUrl(`https://a.test/?a=1&b=${secret}`)).toBe("https://a.test/?a=…&b=…");
    }),
  );
});

test("masked values are found by their names, in their order, wherever the address leads", () => {
  const stored = "https://old.test/?a=1&b=2&a=3&4";
  expect(unmaskUrl("https://new.test/x?a=…&a=…&b=new&…", stored)).toBe("https://new.test/x?a=1&a=3&b=new&4");
  expect(unmaskUrl("https://old.test/?b=…", stored)).toBe("https://old.test/?b=2");
  for (const text of ["https://old.test/?c=…", "https://old.test/?b=…&b=…", "https://old.test/?…&…"]) {
    expect(unmaskUrl(text, stored), text).toBeUndefined();
  }
});

test("masked parts of a path are found at their places, where they look as they are shown", () => {
  const stored = "https://old.test/hooks/T01/abcdefghijklmnopqrstuvwxyz?a=1";
  const expected = "https://new.test/in/T01/abcdefghijklmnopqrstuvwxyz";
  expect(unmaskUrl("https://new.test/in/…/abc…wxyz", stored)).toBe(expected);
  for (const path of [
    "/…",
    "/hooks/…/…",
    "/abc…wxyz",
    "/hooks/T01/abc…wxyy",
    "/hooks/T01/x/abc…wxyz",
    "/hooks/…/T01/…",
  ])
    expect(unmaskUrl(`https://old.test${path}`, stored), path).toBeUndefined();
});
