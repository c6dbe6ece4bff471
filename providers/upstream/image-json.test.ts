import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeBase64 } from "./base64.ts";
import { ImageJsonReader, parseImageJson } from "./image-json.ts";

function cutUp(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const bounds = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return bounds.slice(1).map((end, index) => bytes.subarray(bounds[index], end));
}

/** What the reader has to agree with. */
function parsePlainly(text: string): unknown {
  return JSON.parse(text, (key, value: unknown) => {
    if (key !== "b64_json" || typeof value !== "string") return value;
    const bytes = decodeBase64([Buffer.from(value)]);
    if (bytes === undefined) throw new Error("not base64");
    return bytes;
  });
}

function outcome(read: () => unknown): unknown {
  try {
    return { value: read() };
  } catch {
    return "refused";
  }
}

const cuts = fc.array(fc.nat(100_000), { maxLength: 12 });
const space = fc.constantFrom("", " ", "\n", "\r\n\t ", " ".repeat(80));
const base64 = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString("base64"));
const imageText = fc.oneof(
  { weight: 20, arbitrary: base64.map((text) => `"${text}"`) },
  { weight: 1, arbitrary: base64.map((text) => `"${text.replaceAll("/", "\\/")}"`) },
  { weight: 1, arbitrary: fc.string().map((text) => JSON.stringify(text)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("null", "7", '["x"]', '{"b64_json":"QUI="}', '"\\u0051UI="', '"QUI="'),
  },
);
const key = fc.oneof(
  { weight: 5, arbitrary: fc.constant('"b64_json"') },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      '"b64\\u005fjson"',
      '"b64_jso"',
      '"b64_json_"',
      '"\\"b64_json"',
      '"b64_json\\\\"',
    ),
  },
  { weight: 2, arbitrary: fc.string().map((text) => JSON.stringify(text)) },
);
const otherText = fc.oneof(
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc.constantFrom('"b64_json"', '"a \\"b64_json\\": \\"QUI=\\""', '"\\\\"'),
);
const member = fc
  .tuple(space, key, space, space, fc.oneof(imageText, otherText), space)
  .map(([a, name, b, c, value, d]) => `${a}${name}${b}:${c}${value}${d}`);
const object = fc.array(member, { maxLength: 4 }).map((members) => `{${members.join(",")}}`);
const text = fc
  .tuple(fc.array(fc.oneof(object, otherText), { maxLength: 4 }), space)
  .map(([items, a]) => `{"created":1,${a}"data":[${items.join(",")}],"usage":{"input_tokens":3}}${a}`);

describe("reading JSON with images", () => {
  test("agrees with JSON.parse, however the text is written and cut", () => {
    let images = 0;
    fc.assert(
      fc.property(text, cuts, (json, at) => {
        const expected = outcome(() => parsePlainly(json));
        expect(outcome(() => parseImageJson(cutUp(Buffer.from(json), at)))).toEqual(expected);
        if (expected !== "refused" && /"b64_json"\s*:\s*"\w/.test(json)) images += 1;
      }),
      { numRuns: 1_000 },
    );
    expect(images).toBeGreaterThan(50);
  });

  test("agrees with JSON.parse on what is no JSON", () => {
    const broken = fc
      .tuple(text, fc.nat(100_000), fc.constantFrom("", '"', "\\", "}", "\n", "\u0000"))
      .map(([json, at, more]) => json.slice(0, at % json.length) + more + json.slice((at % json.length) + 1));
    fc.assert(
      fc.property(broken, cuts, (json, at) => {
        const expected = outcome(() => parsePlainly(json));
        expect(outcome(() => parseImageJson(cutUp(Buffer.from(json), at)))).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  test.for([
    '{"b64_json":"a\\"b","b64_json":"QUI="}',
    '{"b64_json":"!","b64_json":"QUI="}',
    '{"b64_json":{"b64_json":"QUI="},"x":"b64_json"}',
    '"b64_json"',
  ])("agrees with JSON.parse on %s", (json) => {
    expect(parseImageJson([Buffer.from(json)])).toEqual(parsePlainly(json));
  });

  test("finds several images of a megabyte each and what stands around them", () => {
    const images = [1, 2, 3].map((fill) => Buffer.alloc(1_000_000 + fill, fill));
    const json = {
      created: 9,
      data: images.map((image) => ({ revised_prompt: 'A "é" \\', b64_json: image.toString("base64") })),
    };
    const cutEvery = Array.from({ length: 60 }, (_, index) => index * 65_537);
    const read = parseImageJson(cutUp(Buffer.from(JSON.stringify(json)), cutEvery)) as typeof json;
    expect(read.created).toBe(9);
    expect(read.data.map(({ revised_prompt }) => revised_prompt)).toEqual(Array(3).fill('A "é" \\'));
    const found = read.data.map(({ b64_json }) => b64_json as unknown as Uint8Array);
    expect(found.map((bytes, index) => images[index]?.equals(bytes))).toEqual([true, true, true]);
  });

  test("holds bytes that stand in no other memory", () => {
    const { b64_json } = parseImageJson([Buffer.from('{"b64_json":"QUJD"}')]) as { b64_json: Buffer };
    expect(b64_json.buffer.byteLength).toBe(3);
  });

  test.for(['{"b64_json":"123}', '{"b64_json":"QUI', '{"a":"QUI', "", "{", '{"b64_json":"QUI="', "<html>"])(
    "refuses %s without quoting it",
    (json) => {
      const error = (() => {
        try {
          return parseImageJson([Buffer.from(json)]);
        } catch (thrown) {
          return thrown;
        }
      })();
      expect(error).toMatchObject({ name: "ProviderError", kind: "bad_answer" });
      expect((error as Error).message).toBe("The upstream sent something that is not JSON.");
      expect((error as Error).cause).toBeUndefined();
    },
  );

  test("refuses endless text around images", () => {
    const reader = new ImageJsonReader();
    reader.push(Buffer.from('{"a":"'));
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const pushAll = () => {
      for (let count = 0; count < 17; count += 1) reader.push(chunk);
    };
    expect(pushAll).toThrow("too much");
  });
});

describe("base64", () => {
  test("comes back whole, however it is cut, padded or not, in either alphabet", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 100 }),
        cuts,
        fc.boolean(),
        fc.boolean(),
        (bytes, at, isUrl, isPadded) => {
          const standard = Buffer.from(bytes).toString(isUrl ? "base64url" : "base64");
          const padding = isPadded ? "=".repeat((4 - (standard.length % 4)) % 4) : "";
          const written = isUrl || isPadded ? standard.replace(/=+$/, "") + padding : standard;
          const decoded = decodeBase64(cutUp(Buffer.from(written), at));
          expect(decoded?.equals(bytes)).toBe(true);
        },
      ),
    );
  });

  test.for(["Q", "QUJDR", "QU!I", "QU I", "=", "==", "QQ=", "Q===", "QQ==QQ==", "QUI=QUI=", "QUI\n", "é"])(
    "%j is none",
    (written) => {
      const bytes = Buffer.from(written);
      expect(decodeBase64([bytes])).toBeUndefined();
      expect(decodeBase64(cutUp(bytes, [1, 2, 3, 4, 5, 6, 7]))).toBeUndefined();
    },
  );
});
