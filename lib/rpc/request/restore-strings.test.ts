import { equals, fromJsonString } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { BodyBytes } from "../../limits/body-bytes.ts";
import { JsonBounds } from "../../limits/json-bounds.ts";
import { LongStrings, longStringBytes } from "../../limits/long-strings.ts";
import { restoreStrings } from "./restore-strings.ts";

const maxCharacters = 1 << 20;

async function decode(json: string) {
  const body = new BodyBytes();
  body.append(Buffer.from(json));
  const scan = new JsonBounds({ maxElements: 100, maxDepth: 100, maxKeyBytes: 100, longStringBytes });
  scan.take(Buffer.from(json));
  const strings = new LongStrings(body, scan.longStrings, "name".repeat(8));
  const parsed = strings.textWithout(maxCharacters).toString();
  const message = fromJsonString(GenerateRequestSchema, parsed, { ignoreUnknownFields: true });
  await restoreStrings(GenerateRequestSchema, message, strings, maxCharacters);
  return { message, parsedBytes: parsed.length };
}

const large = (bytes: number) => Buffer.alloc(bytes, "a picture of a boat");

test.for([60_001, 60_002, 60_003, 900_000])(
  "images of %d bytes go past the parser, and the message is the same",
  async (bytes) => {
    const json = JSON.stringify({
      model: 'a\\"b"',
      inputReferences: [
        { data: large(bytes).toString("base64") },
        { url: "https://a" },
        { data: large(bytes).toString("base64").replace(/=+$/, "") },
      ],
      unknown: "x".repeat(100_000),
      prompt: `é${"p".repeat(100_000)}`,
      trace: { a: ["t".repeat(70_000)] },
      provider: { options: { acme: { style: "s".repeat(80_000) } } },
    });
    const { message, parsedBytes } = await decode(json);
    expect(parsedBytes).toBeLessThan(2000);
    const stock = fromJsonString(GenerateRequestSchema, json, { ignoreUnknownFields: true });
    expect(equals(GenerateRequestSchema, message, stock)).toBe(true);
  },
);

test("texts and base64 with escapes go past it, too, and small ones stay", async () => {
  const text = `${"x".repeat(100_000)}\\"${"y".repeat(10)}`;
  const data = large(300_000).toString("base64").replaceAll("b", "\\u0062");
  const json = `{"prompt":"${text}","model":"m","inputReferences":[{"data":"${data}"}]}`;
  const { message, parsedBytes } = await decode(json);
  expect(parsedBytes).toBeLessThan(1000);
  expect(equals(GenerateRequestSchema, message, fromJsonString(GenerateRequestSchema, json))).toBe(true);
});

test("what is no base64 is none when it is large, either", async () => {
  const reference = (data: string) => JSON.stringify({ inputReferences: [{ data }] });
  for (const data of ["!".repeat(80_000), `${"A".repeat(80_000)}!AAA`, `${"A".repeat(80_000)}=AAA`]) {
    await expect(decode(reference(data))).rejects.toThrow("invalid base64");
  }
});

test("texts have a bound of their own, all together", async () => {
  const half = "x".repeat(maxCharacters / 2);
  const trace = (last: string) => JSON.stringify({ prompt: half, trace: { a: half.slice(1), b: last } });
  expect((await decode(trace("y"))).message.prompt).toBe(half);
  await expect(decode(trace("y".repeat(70_000)))).rejects.toThrow("1048576 bytes of text");
});
