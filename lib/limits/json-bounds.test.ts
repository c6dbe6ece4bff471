import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/media/error/v1/error_reason_pb.ts";
import { DomainError } from "../runtime/domain-error.ts";
import { JsonBounds, type JsonBoundsOptions } from "./json-bounds.ts";

const generous: JsonBoundsOptions = { maxElements: 1e9, maxDepth: 1e9, maxKeyBytes: 1e9 };

/** What the scan says against a text that comes in these chunks; undefined is nothing. */
function verdict(chunks: readonly Uint8Array[], bounds: Partial<JsonBoundsOptions>): string | undefined {
  const scan = new JsonBounds({ ...generous, ...bounds });
  try {
    for (const chunk of chunks) scan.take(chunk);
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof DomainError)) throw thrown;
    expect(thrown.reason).toBe(ErrorReason.INVALID_BODY);
    return thrown.issues[0]?.message;
  }
}

const verdictOf = (text: string, bounds: Partial<JsonBoundsOptions>) => verdict([Buffer.from(text)], bounds);

function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length));
}

function countElements(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce<number>((sum, member) => sum + 1 + countElements(member), 0);
}

function measureDepth(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(measureDepth));
}

function longestKeyBytes(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const keys = Array.isArray(value) ? [] : Object.keys(value);
  const own = keys.map((key) => Buffer.byteLength(JSON.stringify(key)) - 2);
  return Math.max(0, ...own, ...Object.values(value).map(longestKeyBytes));
}

function stringsOf(value: unknown): string[] {
  if (typeof value === "string") return [JSON.stringify(value)];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsOf) : [];
}

/** Strings with what is special to a scan: quotes, backslashes, brackets, and more than a few of them. */
const string = fc
  .array(
    fc.constantFrom('"', "\\", "{", "[", ",", ":", "é", "😀", "\n", " ", "a".repeat(23), "b".repeat(70)),
    {
      maxLength: 8,
    },
  )
  .map((parts) => parts.join(""));
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthSize: "small" },
    fc.oneof(string, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.array(tie("value"), { maxLength: 5 }),
    fc.dictionary(string, tie("value"), { maxKeys: 5 }),
  ),
}));
const written = fc
  .tuple(json, fc.constantFrom(undefined, 1, "\t"))
  .map(([value, space]) => ({ value, text: JSON.stringify(value, null, space) }));
const text = written.map((one) => one.text);

describe("the scan of a JSON text", () => {
  // Not what JSON.parse makes of it: where a name has an escape, V8 13.6 may give another one that it has read before.
  test("counts what the text was made of", () => {
    fc.assert(
      fc.property(written, ({ value, text }) => {
        const most = {
          maxElements: countElements(value),
          maxDepth: measureDepth(value),
          maxKeyBytes: longestKeyBytes(value),
        };
        expect(verdictOf(text, most)).toBeUndefined();
        for (const [name, most1] of Object.entries(most)) {
          if (most1 > 0) expect(verdictOf(text, { [name]: most1 - 1 })).toContain(String(most1 - 1));
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("says the same however the text is cut, JSON or not", () => {
    const loose = fc
      .array(fc.constantFrom('"', "\\", '\\"', "{", "}", "[", "]", ",", ":", "1", " ", "x".repeat(30)), {
        maxLength: 60,
      })
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(
        fc.oneof(text, loose),
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.record({ maxElements: fc.nat(12), maxDepth: fc.nat(6), maxKeyBytes: fc.nat(40) }),
        (written, places, bounds) => {
          const bytes = Buffer.from(written);
          const whole = verdict([bytes], bounds);
          expect(verdict(cut(bytes, places), bounds)).toBe(whole);
          const single = [...bytes].map((byte) => Uint8Array.of(byte));
          expect(verdict(single, bounds)).toBe(whole);
        },
      ),
      { numRuns: 2000 },
    );
  });

  test.for([
    ["[1,1,1]", { maxElements: 2 }, "must not have more than 2 members and items"],
    ['{"a":{"b":1}}', { maxElements: 1 }, "must not have more than 1 members and items"],
    ['{"a":1,"a":1}', { maxElements: 1 }, "must not have more than 1 members and items"],
    ["[[[[", { maxDepth: 3 }, "must not be nested deeper than 3 levels"],
    ['{"abcd":1}', { maxKeyBytes: 3 }, "must not have names longer than 3 bytes"],
    ['{"abcd', { maxKeyBytes: 3 }, "must not have names longer than 3 bytes"],
    ['{"\\"\\"', { maxKeyBytes: 3 }, "must not have names longer than 3 bytes"],
  ] as const)("refuses %s beyond %o", ([written, bounds, message]) => {
    expect(verdictOf(written, bounds)).toBe(message);
  });

  test("looks for neither brackets nor names in strings, and for no names in arrays", () => {
    const long = "[{,".repeat(1000);
    expect(verdictOf(`["${long}","${long}\\"${long}"]`, { maxElements: 2, maxDepth: 1 })).toBeUndefined();
    expect(verdictOf(`{"a":"${long}"}`, { maxElements: 1, maxKeyBytes: 1 })).toBeUndefined();
    expect(verdictOf(`["${long}"]`, { maxKeyBytes: 1 })).toBeUndefined();
  });

  test("lists where long strings stand, names left out, however the text is cut", () => {
    fc.assert(
      fc.property(
        text,
        fc.array(fc.nat(), { maxLength: 12 }),
        fc.nat(30),
        (written, places, longStringBytes) => {
          const bytes = Buffer.from(written);
          const scan = new JsonBounds({ ...generous, longStringBytes });
          for (const chunk of cut(bytes, places)) scan.take(chunk);
          const found = scan.longStrings.map(({ from, until }) =>
            bytes.toString("utf8", from - 1, until + 1),
          );
          const long = stringsOf(JSON.parse(written)).filter(
            (one) => Buffer.byteLength(one) - 2 >= longStringBytes,
          );
          expect(found.sort()).toEqual(long.sort());
        },
      ),
    );
  });

  test("refuses at the bound, not at the end", () => {
    const scan = new JsonBounds({ ...generous, maxElements: 10 });
    scan.take(Buffer.from(`[${"1,".repeat(10)}`));
    expect(() => scan.take(Buffer.from("1"))).toThrow("members and items");
  });
});
