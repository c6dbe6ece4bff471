import fc from "fast-check";
import { expect, test } from "vitest";
import { isDataUrl, parseImageDataUrl } from "../../lib/http/data-url.ts";
import { BodyBytes } from "../../lib/limits/body-bytes.ts";
import { JsonBounds } from "../../lib/limits/json-bounds.ts";
import { longStringBytes } from "../../lib/limits/long-strings.ts";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { maxTextBytes } from "./generation-fields.ts";
import { type JsonObject, parseJsonBody } from "./json-body.ts";
import { type LargeJson, parseLargeJsonBody } from "./large-json.ts";

const headers = { "content-type": "application/json" };
const imageUrl = `data:image/png;base64,${Buffer.alloc(90, 7).toString("base64")}`;

function bytesOf(body: Buffer, places: readonly number[]): BodyBytes {
  const bytes = new BodyBytes();
  const at = places.map((place) => place % (body.length + 1)).sort((a, b) => a - b);
  for (const [index, from] of [0, ...at].entries())
    bytes.append(body.subarray(from, at[index] ?? body.length));
  return bytes;
}

/** Reads a body with strings of so many bytes taken out. */
async function readWith(takenBytes: number, body: Buffer, places: readonly number[]): Promise<LargeJson> {
  const scan = new JsonBounds({
    maxElements: 1e6,
    maxDepth: 1e6,
    maxKeyBytes: 1e6,
    longStringBytes: takenBytes,
  });
  scan.take(body);
  return await parseLargeJsonBody(bytesOf(body, places), scan.longStrings, headers, ["images", "mask"]);
}

const messageOf = (thrown: unknown) =>
  thrown instanceof DomainError ? thrown.message : Promise.reject(thrown);

/** A value with each data URL, taken out or not, as what it comes to where images belong, and as stray elsewhere. */
function told(value: unknown, images: LargeJson["images"], isImage = false): unknown {
  if (typeof value === "string") {
    const taken = images.get(value);
    expect(taken === undefined || isImage).toBe(true);
    if (taken === undefined && !isDataUrl(value)) return value.length > maxTextBytes ? "stray" : value;
    const { bytes, problem } = taken ?? parseImageDataUrl(value);
    return isImage ? (problem ?? Buffer.from(bytes as Uint8Array).toString("hex")) : "stray";
  }
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value).map(([key, member]) => [
    key,
    told(member, images, isImage || key === "images"),
  ]);
}

/** What stands between quotes: whole and broken escapes, pairs and halves of them, what is no UTF-8. */
const parts = fc.constantFrom(
  ...[
    '\\"',
    "\\\\",
    "\\n",
    "\\u0041",
    "\\ud83d\\ude00",
    "é",
    "😀",
    "[",
    "a".repeat(40),
    "\\/",
    "data:,",
    imageUrl,
  ],
  ...["\\ud83d", "\\ude00", "\\u00", "\\x", "\n"],
);
const written = fc.array(parts, { maxLength: 12 }).map((some) => `"${some.join("")}"`);
const names = fc.constantFrom("images", "a", "__proto__", "b");
const members = fc.uniqueArray(fc.tuple(names, written, fc.nat(2)), { selector: ([name]) => name });
const body = members.map((some) => {
  const texts = some.map(([key, text, depth]) => `"${key}":${"[".repeat(depth)}${text}${"]".repeat(depth)}`);
  return Buffer.from(`{${texts.join(",")}}`);
});
const broken = fc
  .tuple(body, fc.nat(), fc.constantFrom(0xff, 0xc3, 0x5c, 0x22, 0x0a))
  .map(([bytes, at, byte]) => {
    bytes[at % bytes.length] = byte;
    return bytes;
  });

test("says what parsing the whole body says, whatever is taken out of it", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(body, body, broken),
      fc.integer({ min: 1, max: 300 }),
      fc.array(fc.nat(), { maxLength: 20 }),
      async (bytes, takenBytes, places) => {
        let whole: JsonObject;
        try {
          whole = parseJsonBody(bytes, headers);
        } catch (thrown) {
          // Where a text has two faults, either may be reported.
          expect(await readWith(takenBytes, bytes, places).catch(messageOf)).toMatch(/^body: must be /);
          return void messageOf(thrown);
        }
        const { value, images } = await readWith(takenBytes, bytes, places);
        expect(told(value, images)).toEqual(told(whole, new Map()));
      },
    ),
    { numRuns: 3000 },
  );
});

test.for([
  ["a prompt", "\\u00e9".repeat(20_000), "é".repeat(20_000)],
  ["a longer one than any field takes", "a".repeat(2 * maxTextBytes), "a".repeat(maxTextBytes + 1)],
] as const)("has the text of %s", async ([, written, text]) => {
  const bytes = Buffer.from(JSON.stringify({ prompt: "-" }).replace("-", written));
  const { value } = await readWith(longStringBytes, bytes, [1000, 70_001]);
  expect(String(value.prompt).startsWith(text)).toBe(true);
});

test("is refused when too much is left without long strings", async () => {
  const texts = Array.from({ length: 40 }, () => "a".repeat(longStringBytes - 1));
  const refused = readWith(longStringBytes, Buffer.from(JSON.stringify({ texts })), []);
  await expect(refused).rejects.toThrow("must not be longer than 2 MiB without its images");
});
