import { describe, expect, test } from "vitest";
import { DomainError } from "../../lib/runtime/domain-error.ts";
import { parseFormBody } from "./form-body.ts";

const headers = { "content-type": "multipart/form-data; boundary=b" };
const field = (name: string, value: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const file = (name: string, value: string) =>
  `--b\r\ncontent-disposition: form-data; name="${name}"; filename="f"\r\n\r\n${value}\r\n`;
const end = "--b--\r\n";

async function encoded(form: FormData) {
  const response = new Response(form);
  const contentType = response.headers.get("content-type") ?? "";
  return { body: Buffer.from(await response.arrayBuffer()), headers: { "content-type": contentType } };
}

async function refusalOf(text: string | Buffer, given: Record<string, string> = headers): Promise<string> {
  const parsed = parseFormBody(Buffer.from(text), given);
  const thrown = await parsed.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(thrown instanceof DomainError)) throw new Error("no refusal");
  return thrown.message;
}

describe("a form", () => {
  test("is read as another program writes it, its files the bytes of the body", async () => {
    const form = new FormData();
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => index % 251));
    form.append("prompt", "zwölf ☃\r\nlines");
    form.append("image[]", new File([bytes], "ü.png", { type: "image/png" }));
    form.append("n", "2");
    form.append("image[]", new File([], "empty"));
    const { body, headers: given } = await encoded(form);
    const { fields, files } = await parseFormBody(body, given);
    expect(fields).toEqual([
      ["prompt", "zwölf ☃\r\nlines"],
      ["n", "2"],
    ]);
    expect(files.map(({ name }) => name)).toEqual(["image[]", "image[]"]);
    expect(Buffer.compare(files[0]?.bytes ?? Buffer.alloc(0), bytes)).toBe(0);
    expect(files[0]?.bytes.buffer).toBe(body.buffer);
    expect(files[1]?.bytes).toHaveLength(0);
  });

  test.for([0x0d, 0x0a, 0x2d])("keeps bytes that look like its own: %i", async (byte) => {
    const bytes = Buffer.alloc(200_000, byte);
    for (let at = 0; at + 6 < bytes.length; at += 4093) bytes.write("\r\n--b\r", at, "latin1");
    const body = Buffer.concat([
      Buffer.from('--long-b\r\ncontent-disposition: form-data; name="image"; filename="f"\r\n\r\n'),
      bytes,
      Buffer.from("\r\n--long-b--\r\n"),
    ]);
    const { files } = await parseFormBody(body, {
      "content-type": "multipart/form-data; boundary=long-b",
    });
    expect(files).toHaveLength(1);
    expect(Buffer.compare(files[0]?.bytes ?? Buffer.alloc(0), bytes)).toBe(0);
  });

  test("without parts is one", async () => {
    expect(await parseFormBody(Buffer.from(end), headers)).toEqual({ fields: [], files: [] });
  });
});

describe("a form is refused", () => {
  const notWhole = "body: must be a whole multipart/form-data body";

  test.for([
    ["of nothing", "", notWhole],
    ["that is none", "hello", notWhole],
    ["that ends in a field", field("a", "1"), notWhole],
    ["that ends in a file", file("a", "1").slice(0, -2), notWhole],
    ["that ends in a header", "--b\r\ncontent-disposition: form-d", notWhole],
    ["of many fields", field("a", "1").repeat(65) + end, "body: has more than 64 fields"],
    ["of many files", file("a", "1").repeat(33) + end, "body: has more than 32 files"],
    [
      "of many parts without a name",
      "--b\r\nx: y\r\n\r\n1\r\n".repeat(1000) + end,
      "body: has more than 96 parts",
    ],
    ["with a field that is too long", field("a", "x".repeat(600_000)) + end, "a: is too long"],
  ] as const)("%s", async ([, text, message]) => {
    expect(await refusalOf(text)).toBe(message);
  });

  test("without a boundary, and in another encoding", async () => {
    const words = "body: the content type must name the boundary of the form";
    expect(await refusalOf(end, { "content-type": "multipart/form-data; charset=utf-8" })).toBe(words);
    const encoding = { ...headers, "content-encoding": "gzip" };
    expect(await refusalOf(end, encoding)).toBe("body: a content encoding is not supported");
  });

  test("before all of it was looked at", async () => {
    const many = Buffer.from(field("a", "1").repeat(200_000) + end);
    let turns = 0;
    let counting = true;
    const count = () => {
      turns += 1;
      if (counting) setImmediate(count);
    };
    count();
    await refusalOf(many);
    counting = false;
    expect(turns).toBeLessThan(5);
  });
});
