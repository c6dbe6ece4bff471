import fc from "fast-check";
import { expect, test } from "vitest";
import { Base64Stream } from "./base64-stream.ts";

test("however bytes are cut, the text is that of the whole, and the next text begins afresh", () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 7 }));
  fc.assert(
    fc.property(pieces, pieces, (...texts) => {
      const stream = new Base64Stream();
      for (const cut of texts) {
        const text = cut.flatMap((piece) => [...stream.push(piece)]).join("") + stream.end();
        expect(text).toBe(Buffer.concat(cut).toString("base64"));
      }
    }),
  );
});

test("all but two bytes go on at once", () => {
  const stream = new Base64Stream();
  const text = [...stream.push(new Uint8Array(1 << 20))].join("");
  expect(text).toHaveLength((((1 << 20) - 1) / 3) * 4);
});
