import fc from "fast-check";
import { expect, test } from "vitest";
import { encodeMultipart } from "./multipart.ts";

function read({ contentType, body }: ReturnType<typeof encodeMultipart>): Promise<FormData> {
  return new Response(Buffer.concat(body), { headers: { "content-type": contentType } }).formData();
}

test("a form is read back as it was, whatever its values and files hold", async () => {
  const form = fc.record({
    fields: fc.array(fc.tuple(fc.string({ minLength: 1 }), fc.string({ unit: "grapheme" })), {
      maxLength: 5,
    }),
    files: fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(form, async ({ fields, files }) => {
      const parts = files.map((bytes) => ({
        name: "image[]",
        fileName: 'a "b".png',
        mediaType: "image/png",
        bytes,
      }));
      const entries = [...(await read(encodeMultipart(fields, parts, "boundary0123")))];
      expect(entries.slice(0, fields.length)).toEqual(fields);
      for (const [index, bytes] of files.entries()) {
        const [name, file] = entries[fields.length + index] ?? [];
        expect(name).toBe("image[]");
        if (!(file instanceof File)) throw new Error("no file");
        expect([file.name, file.type]).toEqual(['a "b".png', "image/png"]);
        expect(new Uint8Array(await file.arrayBuffer())).toEqual(bytes);
      }
    }),
  );
});

test("a file's bytes go as they are, uncopied", () => {
  const bytes = Buffer.alloc(10);
  const { body } = encodeMultipart(
    [["a", "b"]],
    [{ name: "f", fileName: "f", mediaType: "image/png", bytes }],
    "x",
  );
  expect(body.filter((piece) => piece === bytes)).toHaveLength(1);
});
