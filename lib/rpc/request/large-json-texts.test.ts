import { equals, fromJsonString } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { GenerateRequestSchema } from "../../../gen/media/image/v1/image_pb.ts";
import { cutLargeTexts, restoreLargeTexts } from "./large-json-texts.ts";

async function decode(json: string) {
  const cut = cutLargeTexts(Buffer.from(json));
  const message = fromJsonString(GenerateRequestSchema, cut.json.toString(), { ignoreUnknownFields: true });
  await restoreLargeTexts(GenerateRequestSchema, message, cut.texts);
  return { message, parsedBytes: cut.json.length };
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

test("texts with escapes and small ones stay in the JSON", async () => {
  const text = `${"x".repeat(100_000)}\\"${"y".repeat(10)}`;
  const { message, parsedBytes } = await decode(`{"prompt":"${text}","model":"m"}`);
  expect(parsedBytes).toBeGreaterThan(100_000);
  expect(message).toMatchObject({ prompt: text.replace("\\", ""), model: "m" });
});

test("what is no base64 is none when it is large, either", async () => {
  const reference = (data: string) => JSON.stringify({ inputReferences: [{ data }] });
  for (const data of ["!".repeat(80_000), `${"A".repeat(80_000)}!AAA`]) {
    await expect(decode(reference(data))).rejects.toThrow("invalid base64");
  }
  for (const json of ["", "{", `{"prompt":"${"x".repeat(80_000)}`]) {
    expect(cutLargeTexts(Buffer.from(json)).json.toString()).toBe(json);
  }
});
